* Signal path of the cells: a current through diode, copy and n diode into a weight of 5/8 and one of -3/8.
* I_node = g_n (5/8) I for the positive weight, g_p (3/8) I for the negative one; both gains are 1 but for the output
* conductance of the devices. Gains at 1 nA and at 0.1 nA, and the change of the weights' currents for 0.2 V of drain.
* Cells, as scripts/write_goldens.py writes them:
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
* Bench:
.param supply=1.8 signal=1n node=0.54
vdd vdd 0 {supply}
iin p 0 pwl(0 {0.1*signal} 2m {0.1*signal} 2.01m {signal})
xin p vdd input_diode_8
xrails p n vdd signal_rails_8
xpos npos vdd n weight_positive
xneg nneg vdd p weight_negative
vload load 0 pwl(0 {supply-node} 5m {supply-node} 5.01m {supply-node-0.2})
vpos load npos 0
vneg nneg load 0
.tran 20u 8m
.meas tran small_n find i(vpos) at=1.9m
.meas tran small_p find i(vneg) at=1.9m
.meas tran pulled find i(vpos) at=4.9m
.meas tran pushed find i(vneg) at=4.9m
.meas tran pulled_low find i(vpos) at=7.9m
.meas tran pushed_low find i(vneg) at=7.9m
.meas tran drawn find i(vdd) at=4.9m
.meas tran gain_n param='pulled/(0.625*signal)'
.meas tran gain_p param='pushed/(0.375*signal)'
.meas tran gain_n_small param='small_n/(0.0625*signal)'
.meas tran gain_p_small param='small_p/(0.0375*signal)'
.meas tran slope_n param='(1-pulled_low/pulled)/0.2'
.meas tran slope_p param='(pushed_low/pushed-1)/0.2'
.meas tran i_supply param='-drawn'
.end
