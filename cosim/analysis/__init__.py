"""What the waveforms say: calibration, comparison, reports."""
