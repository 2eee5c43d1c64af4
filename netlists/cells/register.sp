* Register of three levels that writes all the time a value which ramps up to 2 nA in 16 s.
* turn_k = I_turn_k: the value at which level k turns on, M1 of the value against M2 on the line of the turn.
* level = 3 I_gain with all of them on.
* Cells, as scripts/write_goldens.py writes them:
* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode

* rectifier, 8 units
.subckt relu_diode node vdd
mdiode node node vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends relu_diode

* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

* inverter: resetb -> reset
.subckt reset_inverter resetb reset vdd
mn reset resetb 0 0 generic180_n w=4e-07 l=4e-07 m=1
mp reset resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
.ends reset_inverter

* sample gate: hold follows cand while clk is high
.subckt sampler cand hold clk clkb resetb vdd
msn hold clk cand 0 generic180_n w=4e-07 l=4e-07 m=1
msp hold clkb cand vdd generic180_p w=4e-07 l=4e-07 m=1
mreset hold resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
chold hold vdd 4e-13
.ends sampler

* comparator of a window
.subckt window hold thresh out vdd
m1 out hold vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m2 out thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends window

* decision of a window: a comparator, and a latch that stands still in a pulse
.subckt window_decision hold thresh above below closed open kp vdd
xcompare hold thresh compared vdd window
mload_lower lower kp vdd vdd generic180_p w=1e-06 l=1e-06 m=1
mlower_compared lower compared 0 0 generic180_n w=4e-07 l=4e-07 m=1
min_above_lower in_above closed lower 0 generic180_n w=4e-07 l=4e-07 m=1
mload_above above kp vdd vdd generic180_p w=1e-06 l=1e-06 m=1
mabove_in_above above in_above 0 0 generic180_n w=4e-07 l=4e-07 m=1
mload_below below kp vdd vdd generic180_p w=1e-06 l=1e-06 m=1
mbelow_above below above 0 0 generic180_n w=4e-07 l=4e-07 m=1
mbelow_in_above below open in_above 0 generic180_n w=4e-07 l=4e-07 m=1
.ends window_decision

* level of a register: q takes over whether val exceeds turn; reset to on
.subckt level_on val turn keep gain out write writeb resetb vdd
m1 v0 val vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m2 v0 turn 0 0 generic180_n w=5e-06 l=5e-06 m=1
m9 q fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mkeep q keep 0 0 generic180_n w=5e-06 l=5e-06 m=1
m7 fb fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m10 fb write new 0 generic180_n w=4e-07 l=4e-07 m=1
m4 new v0 b 0 generic180_n w=4e-07 l=4e-07 m=1
m11 fb writeb old 0 generic180_n w=4e-07 l=4e-07 m=1
m6 old q b 0 generic180_n w=4e-07 l=4e-07 m=1
m8 b keep 0 0 generic180_n w=5e-06 l=5e-06 m=2
m3 out q a 0 generic180_n w=4e-07 l=4e-07 m=1
m5 a gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
mreset q resetb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
.ends level_on

* level of a register: q takes over whether val exceeds turn; reset to off
.subckt level_off val turn keep gain out write writeb reset vdd
m1 v0 val vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m2 v0 turn 0 0 generic180_n w=5e-06 l=5e-06 m=1
m9 q fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
mkeep q keep 0 0 generic180_n w=5e-06 l=5e-06 m=1
m7 fb fb vdd vdd generic180_p w=5e-06 l=5e-06 m=1
m10 fb write new 0 generic180_n w=4e-07 l=4e-07 m=1
m4 new v0 b 0 generic180_n w=4e-07 l=4e-07 m=1
m11 fb writeb old 0 generic180_n w=4e-07 l=4e-07 m=1
m6 old q b 0 generic180_n w=4e-07 l=4e-07 m=1
m8 b keep 0 0 generic180_n w=5e-06 l=5e-06 m=2
m3 out q a 0 generic180_n w=4e-07 l=4e-07 m=1
m5 a gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
mreset q reset 0 0 generic180_n w=4e-07 l=4e-07 m=1
.ends level_off

* thermometer register of 3 levels, starts on 1
.subckt register_3_1 cand pos neg upper lower keep release gain turn1 turn2 turn3 out clk clkb pulse pulseb
+ resetb reset vdd
xsampler cand hold clk clkb resetb vdd sampler
xupper hold upper up upb pulseb pulse kp vdd window_decision
xlower hold lower stays down pulseb pulse kp vdd window_decision
msupply kp keep 0 0 generic180_n w=5e-06 l=5e-06 m=3
mdiode kp kp vdd vdd generic180_p w=1e-06 l=1e-06 m=1
mpulse w pulseb vdd vdd generic180_p w=4e-07 l=4e-07 m=1
mwrite_up write upb w vdd generic180_p w=4e-07 l=4e-07 m=1
mwrite_down write stays w vdd generic180_p w=4e-07 l=4e-07 m=1
mrelease write release 0 0 generic180_n w=5e-06 l=5e-06 m=1
mload_writeb writeb kp vdd vdd generic180_p w=1e-06 l=1e-06 m=3
mwriteb_write writeb write 0 0 generic180_n w=4e-07 l=4e-07 m=1
mpos val upb pos vdd generic180_p w=4e-07 l=4e-07 m=1
mneg val up neg vdd generic180_p w=4e-07 l=4e-07 m=1
xlevel1 val turn1 keep gain out write writeb resetb vdd level_on
xlevel2 val turn2 keep gain out write writeb reset vdd level_off
xlevel3 val turn3 keep gain out write writeb reset vdd level_off
moutput out out vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends register_3_1
* Bench:
.param supply=1.8 gain=500p keep=40p release=500p turn1=0.5n turn2=1n turn3=1.5n node=0.54
vdd vdd 0 {supply}
icand cand 0 3n
xcand cand vdd candidate_diode
ipos pos 0 pwl(0 0 16 2n)
xpos pos vdd relu_diode
ineg neg 0 1n
xneg neg vdd relu_diode
iupper vdd upper 1n
ilower vdd lower 0.5n
ikeep vdd keep {keep}
irelease vdd release {release}
igain vdd gain {gain}
iturn1 vdd turn1 {turn1}
iturn2 vdd turn2 {turn2}
iturn3 vdd turn3 {turn3}
xupper upper bias_diode
xlower lower bias_diode
xkeep keep bias_diode
xrelease release bias_diode
xgain gain bias_diode
xturn1 turn1 bias_diode
xturn2 turn2 bias_diode
xturn3 turn3 bias_diode
vpulse pulse 0 pwl(0 0 20m 0 20.1m {supply})
vpulseb pulseb 0 pwl(0 {supply} 20m {supply} 20.1m 0)
vresetb resetb 0 pwl(0 0 3.5m 0 3.6m {supply})
xreset resetb reset vdd reset_inverter
xcell cand pos neg upper lower keep release gain turn1 turn2 turn3 out vdd 0 pulse pulseb resetb reset vdd
+ register_3_1
mread read out vdd vdd generic180_p w=1u l=5u m=8
vread read 0 {supply-node}
.tran 10m 16
.meas tran on1 when i(vread)='0.5*gain' rise=1 td=1
.meas tran on2 when i(vread)='1.5*gain' rise=1 td=1
.meas tran on3 when i(vread)='2.5*gain' rise=1 td=1
.meas tran level find i(vread) at=16
.meas tran turn_1 param='2n*on1/16'
.meas tran turn_2 param='2n*on2/16'
.meas tran turn_3 param='2n*on3/16'
.end
