* mirror on generic180

* input diode: current drawn from p -> gate line p, 8 units
.subckt input_diode_8 p vdd
mdiode p p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends input_diode_8

* current mirror: gate line p -> gate line n, 8 units, n diode shortened by 1.0384
.subckt signal_rails_8 p n vdd
mcopy n p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
mdiode n n 0 0 generic180_n w=1e-06 l=4.815e-06 m=8
.ends signal_rails_8

* one positive weight
.subckt weight_positive node vdd a_n
* weight 5/8 of a
mw0 node a_n 0 0 generic180_n w=1e-06 l=5e-06 m=5
.ends weight_positive

* one negative weight
.subckt weight_negative node vdd b_p
* weight -3/8 of b
mw0 node b_p vdd vdd generic180_p w=1e-06 l=5e-06 m=3
.ends weight_negative
