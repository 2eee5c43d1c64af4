* network compiled by cosim for generic180

* input diode: current drawn from p -> gate line p, 8 units
.subckt input_diode_8 p vdd
mdiode p p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends input_diode_8

* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

* symbol comparator: out is high where the signal's current is above that of thresh
.subckt symbol_comparator_8 line thresh out vdd
m1 out line vdd vdd generic180_p w=1e-06 l=5e-06 m=8
m2 out thresh 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends symbol_comparator_8

* current mirror: gate line p -> gate line n, 8 units, n diode shortened by 1.0384
.subckt signal_rails_8 p n vdd
mcopy n p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
mdiode n n 0 0 generic180_n w=1e-06 l=4.815e-06 m=8
.ends signal_rails_8

* input diode: current drawn from p -> gate line p, 64 units
.subckt input_diode_64 p vdd
mdiode p p vdd vdd generic180_p w=1e-06 l=5e-06 m=64
.ends input_diode_64

* steering AND: pulls I_gain from node where all 1 bits are high
.subckt steering_and_1 node gain bit0
mbit0 node bit0 s0 0 generic180_n w=1e-06 l=1e-06 m=1
msource s0 gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends steering_and_1

* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode

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

* pedestal: what a state of 0 still carries, so that its gate lines settle
.subckt pedestal_sink out line
msink out line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends pedestal_sink

* linear row of tick.0
.subckt row_tick_0 node vdd count_0_n zero_p
* tick.weight[0,0] target 1 realised 1
mw1 node count_0_n 0 0 generic180_n w=1e-06 l=5e-06 m=8
* tick.0: pedestal of its sources target -1 realised -1
mw2 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends row_tick_0

* rectifier, 8 units
.subckt relu_diode node vdd
mdiode node node vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends relu_diode

* steering AND: pulls I_gain from node where all 2 bits are high
.subckt steering_and_2 node gain bit0 bit1
mbit0 node bit0 s0 0 generic180_n w=1e-06 l=1e-06 m=1
mbit1 s0 bit1 s1 0 generic180_n w=1e-06 l=1e-06 m=1
msource s1 gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends steering_and_2

* linear row of line.0
.subckt row_line_0 node vdd one_n tick_0_p
* line.bias[0] target 0.5 realised 0.5
mw0 node one_n 0 0 generic180_n w=1e-06 l=5e-06 m=4
* line.weight[0,0] target -0.5 realised -0.5
mw1 node tick_0_p vdd vdd generic180_p w=1e-06 l=5e-06 m=4
.ends row_line_0

* clocked 9T cell: track while clk is high, decide while clk is low
.subckt schmitt_clocked_apart cand thresh width gain out clk clkb dec decb resetb vdd
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
mdn latch dec v0 0 generic180_n w=4e-07 l=4e-07 m=1
mdp latch decb v0 vdd generic180_p w=4e-07 l=4e-07 m=1
.ends schmitt_clocked_apart

* linear row of line.1
.subckt row_line_1 node vdd one_n tick_0_p
* line.bias[1] target 0.5 realised 0.5
mw0 node one_n 0 0 generic180_n w=1e-06 l=5e-06 m=4
* line.weight[1,0] target -0.5 realised -0.5
mw1 node tick_0_p vdd vdd generic180_p w=1e-06 l=5e-06 m=4
.ends row_line_1

* linear row of readout.0
.subckt row_readout_0 node vdd line_0_n zero_p
* readout.weight[0,0] target 1 realised 1
mw1 node line_0_n 0 0 generic180_n w=1e-06 l=5e-06 m=8
* readout.0: pedestal of its sources target -1 realised -1
mw3 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends row_readout_0

* linear row of readout.1
.subckt row_readout_1 node vdd line_1_n zero_p
* readout.weight[1,1] target 1 realised 1
mw2 node line_1_n 0 0 generic180_n w=1e-06 l=5e-06 m=8
* readout.1: pedestal of its sources target -1 realised -1
mw3 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends row_readout_1

* the whole network
.subckt network vdd resetb clk0 clkb0 dec0 decb0 pulse0 pulseb0 in_0_p in_1_p one_p zero_p bias_symbol_0
+ bias_gain_0 bias_thresh_0 bias_base_0 bias_delta_0 bias_thresh_1 bias_width_0 bias_pedestal_0 bias_thresh_2
+ bias_width_1 readout_0 readout_1
xdiode_in_0 in_0_p vdd input_diode_8
xbias_symbol_0 bias_symbol_0 bias_diode
xbit_in_0 in_0_p bias_symbol_0 in_0_bit vdd symbol_comparator_8
xdiode_in_1 in_1_p vdd input_diode_8
xbit_in_1 in_1_p bias_symbol_0 in_1_bit vdd symbol_comparator_8
xdiode_one one_p vdd input_diode_8
xrails_one one_p one_n vdd signal_rails_8
xdiode_zero zero_p vdd input_diode_64
xbias_gain_0 bias_gain_0 bias_diode
* count.weight[0,0] on carry.0
xand_count_0_1 count_0_cand bias_gain_0 in_0_bit steering_and_1
xcand_count_0 count_0_cand vdd candidate_diode
xbias_thresh_0 bias_thresh_0 bias_diode
xbias_base_0 bias_base_0 bias_diode
xbias_delta_0 bias_delta_0 bias_diode
xbias_thresh_1 bias_thresh_1 bias_diode
xbias_width_0 bias_width_0 bias_diode
* count.0: rise 0.5 level 1
xcell_count_0 count_0_cand bias_thresh_0 bias_base_0 bias_delta_0 bias_thresh_1 bias_width_0 bias_gain_0
+ count_0_p clk0 clkb0 pulse0 pulseb0 resetb vdd toggle
xbias_pedestal_0 bias_pedestal_0 bias_diode
xpedestal_count_0 count_0_p bias_pedestal_0 pedestal_sink
xrails_count_0 count_0_p count_0_n vdd signal_rails_8
xbit_count_0 count_0_p bias_symbol_0 count_0_bit vdd symbol_comparator_8
xrow_tick_0 tick_0_p vdd count_0_n zero_p row_tick_0
xrelu_tick_0 tick_0_p vdd relu_diode
* line.weight[0,1] on steered.0
xand_line_0_2 line_0_cand bias_gain_0 in_1_bit count_0_bit steering_and_2
xrow_line_0 line_0_cand vdd one_n tick_0_p row_line_0
xcand_line_0 line_0_cand vdd candidate_diode
xbias_thresh_2 bias_thresh_2 bias_diode
xbias_width_1 bias_width_1 bias_diode
* line.0: rise 0.75 fall 0.25 level 1
xcell_line_0 line_0_cand bias_thresh_2 bias_width_1 bias_gain_0 line_0_p clk0 clkb0 dec0 decb0 resetb vdd
+ schmitt_clocked_apart
xpedestal_line_0 line_0_p bias_pedestal_0 pedestal_sink
xrails_line_0 line_0_p line_0_n vdd signal_rails_8
xbit_line_0 line_0_p bias_symbol_0 line_0_bit vdd symbol_comparator_8
* line.weight[1,2] on steered.1
xand_line_1_3 line_1_cand bias_gain_0 count_0_bit line_0_bit steering_and_2
xrow_line_1 line_1_cand vdd one_n tick_0_p row_line_1
xcand_line_1 line_1_cand vdd candidate_diode
* line.1: rise 0.75 fall 0.25 level 1
xcell_line_1 line_1_cand bias_thresh_2 bias_width_1 bias_gain_0 line_1_p clk0 clkb0 dec0 decb0 resetb vdd
+ schmitt_clocked_apart
xpedestal_line_1 line_1_p bias_pedestal_0 pedestal_sink
xrails_line_1 line_1_p line_1_n vdd signal_rails_8
xrow_readout_0 readout_0 vdd line_0_n zero_p row_readout_0
xrow_readout_1 readout_1 vdd line_1_n zero_p row_readout_1
.ends network
