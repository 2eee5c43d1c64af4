* Schmitt trigger of nine transistors: a candidate that ramps up to `peak` in 16 s and down again sets and resets it.
* i_rise = I_thresh, i_fall = I_thresh - I_width, level = I_gain, on = I_thresh + I_width + I_gain from its own supply.
* The state begins and ends where v0 crosses 0.3 of the supply; the level is read by a weight of -1. On: at the peak;
* off: without a candidate. Pins and candidate have a supply of their own, so on and off are those of the cell.
* Cells, as scripts/write_goldens.py writes them:
* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode

* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

* 9T Schmitt trigger: i_rise = I_thresh, i_fall = I_thresh - I_width, I_out = s I_gain
.subckt schmitt_9t cand thresh width gain out vdd
m1 v0 cand vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m9 v0 fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m2 v0 thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
m3 out v0 a 0 generic180_n w=1e-06 l=1e-06 m=1
m5 a gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
m4 out out vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m6 fb v0 b 0 generic180_n w=1e-06 l=1e-06 m=1
m8 b width 0 0 generic180_n w=5e-06 l=5e-06 m=1
m7 fb fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends schmitt_9t
* Bench:
.param supply=1.8 thresh=350p width=200p gain=500p peak=500p node=0.54
vdd vdd 0 {supply}
vpins pins 0 {supply}
icand cand 0 pwl(0 0 16 {peak} 32 0)
xcand cand pins candidate_diode
ithresh pins thresh {thresh}
iwidth pins width {width}
igain pins gain {gain}
xthresh thresh bias_diode
xwidth width bias_diode
xgain gain bias_diode
xcell cand thresh width gain out vdd schmitt_9t
mread read out pins pins generic180_p w=1u l=5u m=8
vread read 0 {supply-node}
.tran 10m 32
.meas tran up when v(xcell.v0)='0.3*supply' rise=1
.meas tran down when v(xcell.v0)='0.3*supply' fall=1 td=16
.meas tran level find i(vread) at=16
.meas tran drawn_on find i(vdd) at=16
.meas tran drawn_off find i(vdd) at=1m
.meas tran i_rise param='peak*up/16'
.meas tran i_fall param='peak*(32-down)/16'
.meas tran i_width param='i_rise-i_fall'
.meas tran on param='-drawn_on'
.meas tran off param='-drawn_off'
.end
