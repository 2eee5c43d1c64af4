* Toggle in frames of 10 ms: a candidate that creeps up by 7 pA a frame, and a state that turns in every frame above.
* i_upper = I_upper: the candidate of the first frame that turns it, less half a step and what the ramp adds from the
* decision at 0.7 of the frame to the pulse at 0.8. period = 20 ms: on in one frame, off in the next.
* Cells, as scripts/write_goldens.py writes them:
* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode

* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

* sample gate: hold follows cand while clk is high
.subckt sampler cand hold clk clkb resetb vdd
msn hold clk cand 0 generic180_n w=4e-07 l=4e-07 m=1
msp hold clkb cand vdd generic180_p w=4e-07 l=4e-07 m=1
mreset hold resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
chold hold vdd 4e-13
.ends sampler

* comparator: latch takes the decision while clk is low and keeps it while clk is high
.subckt comparator hold thresh latch clk clkb vdd
m1 v0 hold vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m2 v0 thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdn latch clkb v0 0 generic180_n w=4e-07 l=4e-07 m=1
mdp latch clk v0 vdd generic180_p w=4e-07 l=4e-07 m=1
.ends comparator

* clocked 9T cell: track while clk is high, decide while clk is low
.subckt schmitt_clocked_latch cand thresh width gain out clk clkb resetb vdd latch
msn hold clk cand 0 generic180_n w=4e-07 l=4e-07 m=1
msp hold clkb cand vdd generic180_p w=4e-07 l=4e-07 m=1
mreset hold resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
chold hold vdd 4e-13
m1 v0 hold vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m9 v0 fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m2 v0 thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
m3 out latch a 0 generic180_n w=1e-06 l=1e-06 m=1
m5 a gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
m4 out out vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m6 fb latch b 0 generic180_n w=1e-06 l=1e-06 m=1
m8 b width 0 0 generic180_n w=5e-06 l=5e-06 m=1
m7 fb fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mdn latch clkb v0 0 generic180_n w=4e-07 l=4e-07 m=1
mdp latch clk v0 vdd generic180_p w=4e-07 l=4e-07 m=1
.ends schmitt_clocked_latch

* toggle: the state changes at every pulse at which the candidate was above its threshold
.subckt toggle cand upper base delta thresh width gain out clk clkb pulse pulseb resetb vdd
xsampler cand hold clk clkb resetb vdd sampler
xmaster hold upper up clk clkb vdd comparator
xdrive drive vdd candidate_diode
mbase drive base 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdelta drive delta 0 0 generic180_n w=5e-06 l=5e-06 m=1
mup drive up a 0 generic180_n w=1e-06 l=1e-06 m=1
mdelta_up a delta 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdiode zq zq vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mzq_up zq up b 0 generic180_n w=1e-06 l=1e-06 m=1
mzq_q b q c 0 generic180_n w=1e-06 l=1e-06 m=1
mdelta_zq c delta 0 0 generic180_n w=5e-06 l=5e-06 m=2
mpush drive zq vdd vdd generic180_p w=5e-06 l=5e-06 m=1
xslave drive thresh width gain out pulseb pulse resetb vdd q schmitt_clocked_latch
.ends toggle
* Bench:
.param supply=1.8 upper=350p base=50p delta=200p thresh=350p width=200p gain=500p node=0.54
vdd vdd 0 {supply}
icand cand 0 pwl(0 0 5m 0 5.1m 280p 255m 455p)
xcand cand vdd candidate_diode
iupper vdd upper {upper}
ibase vdd base {base}
idelta vdd delta {delta}
ithresh vdd thresh {thresh}
iwidth vdd width {width}
igain vdd gain {gain}
xupper upper bias_diode
xbase base bias_diode
xdelta delta bias_diode
xthresh thresh bias_diode
xwidth width bias_diode
xgain gain bias_diode
vclk clk 0 pulse(0 {supply} 4.7m 0.1m 0.1m 7.2m 10m)
vclkb clkb 0 pulse({supply} 0 4.7m 0.1m 0.1m 7.2m 10m)
vpulse pulse 0 pulse({supply} 0 4.5m 0.1m 0.1m 8.4m 10m)
vpulseb pulseb 0 pulse(0 {supply} 4.5m 0.1m 0.1m 8.4m 10m)
vresetb resetb 0 pwl(0 0 4.6m 0 4.65m {supply})
xcell cand upper base delta thresh width gain out clk clkb pulse pulseb resetb vdd toggle
mread read out vdd vdd generic180_p w=1u l=5u m=8
vread read 0 {supply-node}
.tran 0.2m 255m
.meas tran up when i(vread)='0.5*gain' rise=1 td=5m
.meas tran period trig i(vread) val='0.5*gain' rise=1 td=5m targ i(vread) val='0.5*gain' rise=2 td=5m
.meas tran i_upper param='280p+0.7n*(up-5m)-0.7p-3.5p'
.end
