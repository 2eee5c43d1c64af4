* Rectifier: a candidate diode at a node that a weight of +1 pulls down by a ramp and a weight of -1 pushes up.
* I = max(g_n pull - g_p push, 0): nothing at half of the push (off), the corner's rest where both are equal; turn: the
* pull over the push at which the diode carries 0.1 of the push, 1.1; gain: dI / dpull above it, g_n.
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

* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode
* Bench:
.param supply=1.8 push=1n
vdd vdd 0 {supply}
ipull ap 0 pwl(0 0 2 {2*push})
xa ap vdd input_diode_8
xrails ap an vdd signal_rails_8
ipush bp 0 {push}
xb bp vdd input_diode_8
mpos cand an 0 0 generic180_n w=1u l=5u m=8
mneg cand bp vdd vdd generic180_p w=1u l=5u m=8
vsense vdd sensed 0
xcand cand sensed candidate_diode
.tran 2m 2
.meas tran off find i(vsense) at=0.5
.meas tran corner find i(vsense) at=1
.meas tran turned when i(vsense)='0.1*push' rise=1
.meas tran before find i(vsense) at=1.5
.meas tran behind find i(vsense) at=2
.meas tran turn param='turned/1'
.meas tran gain param='(behind-before)/(0.5*push)'
.end
