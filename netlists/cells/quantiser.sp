* Comparators and driver of the quantiser on one slow ramp of the candidate: reset, retain, set.
* The sampler tracks, the comparators decide and the pulse is on all the time, so the driver's line `in` carries
* I_base below the lower threshold, I_base + I_delta above it, I_base + 2 I_delta above the upper one. A sink reads it.
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

* driver: reset, retain or set current while pulse is high, retain otherwise
.subckt driver up down base delta in pulse pulseb vdd
mbase p base 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdown p down d 0 generic180_n w=1e-06 l=1e-06 m=1
mrest p pulseb d 0 generic180_n w=1e-06 l=1e-06 m=1
mdelta_d d delta 0 0 generic180_n w=5e-06 l=5e-06 m=1
mpulse p pulse m 0 generic180_n w=1e-06 l=1e-06 m=1
mup m up u 0 generic180_n w=1e-06 l=1e-06 m=1
mdelta_u u delta 0 0 generic180_n w=5e-06 l=5e-06 m=1
mdiode_p p p vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mcopy in p vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mdiode_n in in 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends driver

* pedestal: what a state of 0 still carries, so that its gate lines settle
.subckt pedestal_sink out line
msink out line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends pedestal_sink
* Bench:
.param supply=1.8 upper=350p lower=150p base=50p delta=200p peak=500p node=0.54
vdd vdd 0 {supply}
icand cand 0 pwl(0 0 16 {peak})
xcand cand vdd candidate_diode
iupper vdd upper {upper}
ilower vdd lower {lower}
ibase vdd base {base}
idelta vdd delta {delta}
xupper upper bias_diode
xlower lower bias_diode
xbase base bias_diode
xdelta delta bias_diode
xsampler cand hold vdd 0 vdd vdd sampler
xup hold upper up 0 vdd vdd comparator
xdown hold lower down 0 vdd vdd comparator
xdriver up down base delta in vdd 0 vdd driver
xsink read in pedestal_sink
vload load 0 {supply-node}
vread load read 0
.tran 10m 16
.meas tran reset find i(vread) at=1
.meas tran retain find i(vread) at=8
.meas tran set find i(vread) at=16
.meas tran passed_lower when i(vread)='base+0.5*delta' rise=1
.meas tran passed_upper when i(vread)='base+1.5*delta' rise=1
.meas tran i_lower param='peak*passed_lower/16'
.meas tran i_upper param='peak*passed_upper/16'
.end
