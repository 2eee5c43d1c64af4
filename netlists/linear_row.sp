* linear_row on generic180

* three weights on one summing node
.subckt linear_row node vdd a_n b_p c_n
* weight 5/8 of a
mw0 node a_n 0 0 generic180_n w=1e-06 l=5e-06 m=5
* weight -3/8 of b
mw1 node b_p vdd vdd generic180_p w=1e-06 l=5e-06 m=3
* weight 11/8 of c
mw2 node c_n 0 0 generic180_n w=1e-06 l=5e-06 m=11
.ends linear_row
