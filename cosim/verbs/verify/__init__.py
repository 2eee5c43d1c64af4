"""Command `cosim verify`: say which kept files of a folder are whole."""
