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

* input diode: current drawn from p -> gate line p, 64 units
.subckt input_diode_64 p vdd
mdiode p p vdd vdd generic180_p w=1e-06 l=5e-06 m=64
.ends input_diode_64

* steering AND: pulls I_gain from node where all 1 bits are high
.subckt steering_and_1 node gain bit0
mbit0 node bit0 s0 0 generic180_n w=1e-06 l=1e-06 m=1
msource s0 gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends steering_and_1

* steering AND: pulls I_gain from node where all 2 bits are high
.subckt steering_and_2 node gain bit0 bit1
mbit0 node bit0 s0 0 generic180_n w=1e-06 l=1e-06 m=1
mbit1 s0 bit1 s1 0 generic180_n w=1e-06 l=1e-06 m=1
msource s1 gain 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends steering_and_2

* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode

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

* pedestal: what a state of 0 still carries, so that its gate lines settle
.subckt pedestal_sink out line
msink out line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends pedestal_sink

* current mirror: gate line p -> gate line n, 8 units, n diode shortened by 1.0384
.subckt signal_rails_8 p n vdd
mcopy n p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
mdiode n n 0 0 generic180_n w=1e-06 l=4.815e-06 m=8
.ends signal_rails_8

* linear row of ring.1
.subckt row_ring_1 node vdd ring_0_n zero_p
* ring.weight[1,2] target 1 realised 1
mw3 node ring_0_n 0 0 generic180_n w=1e-06 l=5e-06 m=8
* ring.1: pedestal of its sources target -1 realised -1
mw6 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends row_ring_1

* linear row of ring.2
.subckt row_ring_2 node vdd ring_1_n zero_p
* ring.weight[2,3] target 1 realised 1
mw4 node ring_1_n 0 0 generic180_n w=1e-06 l=5e-06 m=8
* ring.2: pedestal of its sources target -1 realised -1
mw6 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends row_ring_2

* linear row of readout.0
.subckt row_readout_0 node vdd ring_2_n zero_p
* readout.weight[0,2] target 1 realised 1
mw3 node ring_2_n 0 0 generic180_n w=1e-06 l=5e-06 m=8
* readout.0: pedestal of its sources target -1 realised -1
mw4 node zero_p vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends row_readout_0

* the whole network
.subckt network vdd resetb clk0 clkb0 dec0 decb0 in_0_p in_1_p in_2_p one_p zero_p bias_symbol_0 bias_gain_0
+ bias_thresh_0 bias_width_0 bias_pedestal_0 bias_thresh_1 bias_width_1 readout_0
xdiode_in_0 in_0_p vdd input_diode_8
xdiode_in_1 in_1_p vdd input_diode_8
xbias_symbol_0 bias_symbol_0 bias_diode
xbit_in_1 in_1_p bias_symbol_0 in_1_bit vdd symbol_comparator_8
xdiode_in_2 in_2_p vdd input_diode_8
xbit_in_2 in_2_p bias_symbol_0 in_2_bit vdd symbol_comparator_8
xdiode_one one_p vdd input_diode_8
xdiode_zero zero_p vdd input_diode_64
xbias_gain_0 bias_gain_0 bias_diode
* ring.weight[0,0] on steered.0
xand_ring_0_1 ring_0_cand bias_gain_0 in_1_bit steering_and_1
* ring.weight[0,1] on steered.1
xand_ring_0_2 ring_0_cand bias_gain_0 in_2_bit ring_2_bit steering_and_2
xcand_ring_0 ring_0_cand vdd candidate_diode
xbias_thresh_0 bias_thresh_0 bias_diode
xbias_width_0 bias_width_0 bias_diode
* ring.0: rise 0.55 fall 0.35 level 1
xcell_ring_0 ring_0_cand bias_thresh_0 bias_width_0 bias_gain_0 ring_0_p clk0 clkb0 dec0 decb0 resetb vdd
+ schmitt_clocked_apart
xbias_pedestal_0 bias_pedestal_0 bias_diode
xpedestal_ring_0 ring_0_p bias_pedestal_0 pedestal_sink
xrails_ring_0 ring_0_p ring_0_n vdd signal_rails_8
xrow_ring_1 ring_1_cand vdd ring_0_n zero_p row_ring_1
xcand_ring_1 ring_1_cand vdd candidate_diode
xbias_thresh_1 bias_thresh_1 bias_diode
xbias_width_1 bias_width_1 bias_diode
* ring.1: rise 0.55 fall 0.35 level 1
xcell_ring_1 ring_1_cand bias_thresh_1 bias_width_1 bias_gain_0 ring_1_p clk0 clkb0 dec0 decb0 resetb vdd
+ schmitt_clocked_apart
xpedestal_ring_1 ring_1_p bias_pedestal_0 pedestal_sink
xrails_ring_1 ring_1_p ring_1_n vdd signal_rails_8
xrow_ring_2 ring_2_cand vdd ring_1_n zero_p row_ring_2
xcand_ring_2 ring_2_cand vdd candidate_diode
* ring.2: rise 0.55 fall 0.35 level 1
xcell_ring_2 ring_2_cand bias_thresh_1 bias_width_1 bias_gain_0 ring_2_p clk0 clkb0 dec0 decb0 resetb vdd
+ schmitt_clocked_apart
xpedestal_ring_2 ring_2_p bias_pedestal_0 pedestal_sink
xrails_ring_2 ring_2_p ring_2_n vdd signal_rails_8
xbit_ring_2 ring_2_p bias_symbol_0 ring_2_bit vdd symbol_comparator_8
xrow_readout_0 readout_0 vdd ring_2_n zero_p row_readout_0
.ends network
