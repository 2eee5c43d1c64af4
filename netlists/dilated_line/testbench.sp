* testbench of network.sp; what it should show: expected.csv
.include network.sp
.include devices.lib
xnetwork vdd resetb clk0 clkb0 dec0 decb0 pulse0 pulseb0 in_0_p in_1_p one_p zero_p bias_symbol_0 bias_gain_0
+ bias_thresh_0 bias_base_0 bias_delta_0 bias_thresh_1 bias_width_0 bias_pedestal_0 bias_thresh_2 bias_width_1
+ readout_0 readout_1 network
vdd vdd 0 dc 1.8e+00
vground vdd vground dc 5.39839937e-01
vresetb resetb 0 pwl(0e+00 0e+00 3.5e-03 0e+00 3.6e-03 1.8e+00)
iunit one_p 0 dc 1e-09
ipedestal zero_p 0 dc 4e-10
vclk0 clk0 0 pwl(0e+00 0e+00 4.8e-03 0e+00 4.9e-03 1.8e+00 1.2e-02 1.8e+00 1.21e-02 0e+00 1.47e-02 0e+00
+ 1.48e-02 1.8e+00 2.2e-02 1.8e+00 2.21e-02 0e+00 2.47e-02 0e+00 2.48e-02 1.8e+00 3.2e-02 1.8e+00 3.21e-02
+ 0e+00 3.47e-02 0e+00 3.48e-02 1.8e+00 4.2e-02 1.8e+00 4.21e-02 0e+00 4.47e-02 0e+00 4.48e-02 1.8e+00 5.2e-02
+ 1.8e+00 5.21e-02 0e+00 5.47e-02 0e+00 5.48e-02 1.8e+00 6.2e-02 1.8e+00 6.21e-02 0e+00 6.47e-02 0e+00
+ 6.48e-02 1.8e+00 7.2e-02 1.8e+00 7.21e-02 0e+00 7.47e-02 0e+00 7.48e-02 1.8e+00 8.2e-02 1.8e+00 8.21e-02
+ 0e+00 8.47e-02 0e+00 8.48e-02 1.8e+00)
vclkb0 clkb0 0 pwl(0e+00 1.8e+00 4.8e-03 1.8e+00 4.9e-03 0e+00 1.2e-02 0e+00 1.21e-02 1.8e+00 1.47e-02 1.8e+00
+ 1.48e-02 0e+00 2.2e-02 0e+00 2.21e-02 1.8e+00 2.47e-02 1.8e+00 2.48e-02 0e+00 3.2e-02 0e+00 3.21e-02 1.8e+00
+ 3.47e-02 1.8e+00 3.48e-02 0e+00 4.2e-02 0e+00 4.21e-02 1.8e+00 4.47e-02 1.8e+00 4.48e-02 0e+00 5.2e-02 0e+00
+ 5.21e-02 1.8e+00 5.47e-02 1.8e+00 5.48e-02 0e+00 6.2e-02 0e+00 6.21e-02 1.8e+00 6.47e-02 1.8e+00 6.48e-02
+ 0e+00 7.2e-02 0e+00 7.21e-02 1.8e+00 7.47e-02 1.8e+00 7.48e-02 0e+00 8.2e-02 0e+00 8.21e-02 1.8e+00 8.47e-02
+ 1.8e+00 8.48e-02 0e+00)
vdec0 dec0 0 pwl(0e+00 1.8e+00 4.6e-03 1.8e+00 4.7e-03 0e+00 1.22e-02 0e+00 1.23e-02 1.8e+00 1.45e-02 1.8e+00
+ 1.46e-02 0e+00 2.22e-02 0e+00 2.23e-02 1.8e+00 2.45e-02 1.8e+00 2.46e-02 0e+00 3.22e-02 0e+00 3.23e-02
+ 1.8e+00 3.45e-02 1.8e+00 3.46e-02 0e+00 4.22e-02 0e+00 4.23e-02 1.8e+00 4.45e-02 1.8e+00 4.46e-02 0e+00
+ 5.22e-02 0e+00 5.23e-02 1.8e+00 5.45e-02 1.8e+00 5.46e-02 0e+00 6.22e-02 0e+00 6.23e-02 1.8e+00 6.45e-02
+ 1.8e+00 6.46e-02 0e+00 7.22e-02 0e+00 7.23e-02 1.8e+00 7.45e-02 1.8e+00 7.46e-02 0e+00 8.22e-02 0e+00
+ 8.23e-02 1.8e+00 8.45e-02 1.8e+00 8.46e-02 0e+00)
vdecb0 decb0 0 pwl(0e+00 0e+00 4.6e-03 0e+00 4.7e-03 1.8e+00 1.22e-02 1.8e+00 1.23e-02 0e+00 1.45e-02 0e+00
+ 1.46e-02 1.8e+00 2.22e-02 1.8e+00 2.23e-02 0e+00 2.45e-02 0e+00 2.46e-02 1.8e+00 3.22e-02 1.8e+00 3.23e-02
+ 0e+00 3.45e-02 0e+00 3.46e-02 1.8e+00 4.22e-02 1.8e+00 4.23e-02 0e+00 4.45e-02 0e+00 4.46e-02 1.8e+00
+ 5.22e-02 1.8e+00 5.23e-02 0e+00 5.45e-02 0e+00 5.46e-02 1.8e+00 6.22e-02 1.8e+00 6.23e-02 0e+00 6.45e-02
+ 0e+00 6.46e-02 1.8e+00 7.22e-02 1.8e+00 7.23e-02 0e+00 7.45e-02 0e+00 7.46e-02 1.8e+00 8.22e-02 1.8e+00
+ 8.23e-02 0e+00 8.45e-02 0e+00 8.46e-02 1.8e+00)
vpulse0 pulse0 0 pwl(0e+00 1.8e+00 2e-03 1.8e+00 2.1e-03 0e+00 1.28e-02 0e+00 1.29e-02 1.8e+00 1.43e-02
+ 1.8e+00 1.44e-02 0e+00 2.28e-02 0e+00 2.29e-02 1.8e+00 2.43e-02 1.8e+00 2.44e-02 0e+00 3.28e-02 0e+00
+ 3.29e-02 1.8e+00 3.43e-02 1.8e+00 3.44e-02 0e+00 4.28e-02 0e+00 4.29e-02 1.8e+00 4.43e-02 1.8e+00 4.44e-02
+ 0e+00 5.28e-02 0e+00 5.29e-02 1.8e+00 5.43e-02 1.8e+00 5.44e-02 0e+00 6.28e-02 0e+00 6.29e-02 1.8e+00
+ 6.43e-02 1.8e+00 6.44e-02 0e+00 7.28e-02 0e+00 7.29e-02 1.8e+00 7.43e-02 1.8e+00 7.44e-02 0e+00 8.28e-02
+ 0e+00 8.29e-02 1.8e+00 8.43e-02 1.8e+00 8.44e-02 0e+00)
vpulseb0 pulseb0 0 pwl(0e+00 0e+00 2e-03 0e+00 2.1e-03 1.8e+00 1.28e-02 1.8e+00 1.29e-02 0e+00 1.43e-02 0e+00
+ 1.44e-02 1.8e+00 2.28e-02 1.8e+00 2.29e-02 0e+00 2.43e-02 0e+00 2.44e-02 1.8e+00 3.28e-02 1.8e+00 3.29e-02
+ 0e+00 3.43e-02 0e+00 3.44e-02 1.8e+00 4.28e-02 1.8e+00 4.29e-02 0e+00 4.43e-02 0e+00 4.44e-02 1.8e+00
+ 5.28e-02 1.8e+00 5.29e-02 0e+00 5.43e-02 0e+00 5.44e-02 1.8e+00 6.28e-02 1.8e+00 6.29e-02 0e+00 6.43e-02
+ 0e+00 6.44e-02 1.8e+00 7.28e-02 1.8e+00 7.29e-02 0e+00 7.43e-02 0e+00 7.44e-02 1.8e+00 8.28e-02 1.8e+00
+ 8.29e-02 0e+00 8.43e-02 0e+00 8.44e-02 1.8e+00)
ibias_symbol_0 vdd bias_symbol_0 dc 5.5e-10
ibias_gain_0 vdd bias_gain_0 dc 9.88503780763e-10
ibias_thresh_0 vdd bias_thresh_0 dc 5.06147385014e-10
ibias_base_0 vdd bias_base_0 dc 5e-11
ibias_delta_0 vdd bias_delta_0 dc 2e-10
ibias_thresh_1 vdd bias_thresh_1 dc 3.56583726422e-10
ibias_width_0 vdd bias_width_0 dc 2.03216545353e-10
ibias_pedestal_0 vdd bias_pedestal_0 dc 4.89220050856e-11
ibias_thresh_2 vdd bias_thresh_2 dc 7.63986769524e-10
ibias_width_1 vdd bias_width_1 dc 5.12173135249e-10
vreadout_0 vground readout_0 dc 0e+00
vreadout_1 vground readout_1 dc 0e+00
iin_0_p in_0_p 0 pwl(0e+00 5e-11 5e-03 5e-11 5.1e-03 1.05e-09 1.5e-02 1.05e-09 1.51e-02 5e-11 4.5e-02 5e-11
+ 4.51e-02 1.05e-09 6.5e-02 1.05e-09 6.51e-02 5e-11)
iin_1_p in_1_p 0 pwl(0e+00 5e-11 1.5e-02 5e-11 1.51e-02 1.05e-09 4.5e-02 1.05e-09 4.51e-02 5e-11 6.5e-02 5e-11
+ 6.51e-02 1.05e-09)
.options gmin=1e-16 abstol=1e-15 vntol=1e-06 chgtol=1e-17 reltol=1e-04 trtol=2e+01 xmu=4e-01 bypass=0 num_threads=1
.temp 2.7e+01
.save v(xnetwork.xcell_count_0.q)
.save v(xnetwork.xcell_line_0.latch)
.save v(xnetwork.xcell_line_1.latch)
.save i(vreadout_0)
.save i(vreadout_1)
.save i(vdd)
.save i(vground)
.save i(vclk0)
.save i(vclkb0)
.save i(vdec0)
.save i(vdecb0)
.save i(vpulse0)
.save i(vpulseb0)
.tran 2e-04 8.5e-02 0e+00 2e-04
.end
