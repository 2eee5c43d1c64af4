* Clocked Schmitt trigger in frames of 10 ms: the candidate creeps up and down, and the cell decides once in each frame.
* i_set = I_thresh, i_reset = I_thresh - I_width, level = I_gain. The clock is low from 0.7 to 0.97 of a frame.
* The candidate rises by 7 pA and falls by 8 pA a frame while thresholds are sought, so a threshold is known to 3.5 or
* 4 pA, and this half of a step is taken off. 35 pA of candidate would be 10 % of the threshold.
* Cells, as scripts/write_goldens.py writes them:
* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode

* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

* clocked 9T cell: track while clk is high, decide while clk is low
.subckt schmitt_clocked cand thresh width gain out clk clkb resetb vdd
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
.ends schmitt_clocked
* Bench:
.param supply=1.8 thresh=350p width=200p gain=500p node=0.54
vdd vdd 0 {supply}
icand cand 0 pwl(0 0 5m 0 5.1m 280p 205m 420p 225m 420p 225.1m 230p 425m 70p)
xcand cand vdd candidate_diode
ithresh vdd thresh {thresh}
iwidth vdd width {width}
igain vdd gain {gain}
xthresh thresh bias_diode
xwidth width bias_diode
xgain gain bias_diode
vclk clk 0 pulse(0 {supply} 4.7m 0.1m 0.1m 7.2m 10m)
vclkb clkb 0 pulse({supply} 0 4.7m 0.1m 0.1m 7.2m 10m)
vresetb resetb 0 pwl(0 0 3.5m 0 3.6m {supply})
xcell cand thresh width gain out clk clkb resetb vdd schmitt_clocked
mread read out vdd vdd generic180_p w=1u l=5u m=8
vread read 0 {supply-node}
.tran 0.2m 425m
.meas tran up when i(vread)='0.5*gain' rise=1 td=5m
.meas tran down when i(vread)='0.5*gain' fall=1 td=225m
.meas tran level find i(vread) at=224m
.meas tran i_set param='280p+0.7n*(up-5m)-3.5p'
.meas tran i_reset param='230p-0.8n*(down-225m)+4p'
.end
