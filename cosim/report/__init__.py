"""Tables for a terminal, figures, HTML pages and schematics: everything that people look at."""
