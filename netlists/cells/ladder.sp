* Rung of a ladder: its line `in` ramps up to `peak` in 16 s and down again, without neighbours.
* i_rise = I_thresh, i_fall = I_thresh - I_width of the current in the line's diode; level = I_gain, into the sum.
* Cells, as scripts/write_goldens.py writes them:
* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode

* rung of a ladder, reset to off
.subckt rung_off in u thresh width gain s out resetb vdd
xcand u vdd candidate_diode
min u in 0 0 generic180_n w=5e-06 l=5e-06 m=1
m1 v0 u vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m9 v0 fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m2 v0 thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
m3 s v0 a 0 generic180_n w=1e-06 l=1e-06 m=1
m5 a gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
m4 s s vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m6 fb v0 b 0 generic180_n w=1e-06 l=1e-06 m=1
m8 b width 0 0 generic180_n w=5e-06 l=5e-06 m=1
m7 fb fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m10 out v0 c 0 generic180_n w=1e-06 l=1e-06 m=1
m11 c gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
mreset u resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
.ends rung_off
* Bench:
.param supply=1.8 thresh=350p width=200p gain=500p peak=500p node=0.54
vdd vdd 0 {supply}
iin vdd in pwl(0 0 16 {peak} 32 0)
xin in bias_diode
ithresh vdd thresh {thresh}
iwidth vdd width {width}
igain vdd gain {gain}
xthresh thresh bias_diode
xwidth width bias_diode
xgain gain bias_diode
xrung in u thresh width gain s out vdd vdd rung_off
vload load 0 {supply-node}
vout load out 0
.tran 10m 32
.meas tran up when v(xrung.v0)='0.3*supply' rise=1
.meas tran down when v(xrung.v0)='0.3*supply' fall=1 td=16
.meas tran level find i(vout) at=16
.meas tran i_rise param='peak*up/16'
.meas tran i_fall param='peak*(32-down)/16'
.meas tran i_width param='i_rise-i_fall'
.end
