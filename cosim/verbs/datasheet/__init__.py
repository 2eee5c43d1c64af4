"""cosim datasheet: the measures of any MOS netlist under its conditions and on chips with mismatch, against limits."""
