* readout_row on generic180

* two weights into the virtual ground
.subckt readout_row node vdd a_p b_n
* weight -7/8 of a
mw0 node a_p vdd vdd generic180_p w=1e-06 l=5e-06 m=7
* weight 2/8 of b
mw1 node b_n 0 0 generic180_n w=1e-06 l=5e-06 m=2
.ends readout_row
