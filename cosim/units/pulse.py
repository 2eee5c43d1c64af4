"""Timing of a frame's pulse: after its stage's decision, for units whose state follows in a second step."""

PULSE_BEGIN, PULSE_END = 0.08, 0.23  # of a frame, after the stage's decision starts
