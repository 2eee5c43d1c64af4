"""The times in a frame that units share."""

# of a frame, after its stage's decision begins: the pulse of units whose state follows in a second step
PULSE_BEGIN, PULSE_END = 0.08, 0.23
TAU_FRAMES = 0.25  # time constant of slow units over the frame, where it is not given
