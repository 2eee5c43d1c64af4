* StrongARM comparator: the input at which its decision turns, its offset.
* Clock low: m7 to m10 charge both outputs and both inner nodes. Clock high: the pair m1 m2 discharges them, and the
* cross-coupled m3 to m6 decide. The input rises from -20 mV to 20 mV in 16 decisions of 1 ms; outp falls in those before
* the turn, outn in those behind it. A decision takes t0 - tau ln |input - offset|. So the two decisions next to the turn,
* whose inputs are x below and step - x above the offset, differ in delay by tau ln(x / (step - x)), which gives x. tau is
* that at 27 C; another one moves the result by less than a step, 2.5 mV. The input is that at the clock's rising edge.
* Written anew from T. Kobayashi et al., A current-controlled latch sense amplifier and a static power-saving input
* buffer for low-power architecture, IEEE J. Solid-State Circuits 28 (1993) 523.
.param supply=0.8 middle=0.5 span=20m period=1m tau=24u
vdd vdd 0 {supply}
vclk clk 0 pulse(0 {supply} {period/2} 2u 2u {0.49*period} {period})
vp inp 0 pwl(0 {middle-span/2} {16*period} {middle+span/2})
vn inn 0 pwl(0 {middle+span/2} {16*period} {middle-span/2})
mt tail clk 0 0 generic180_n w=2u l=2u m=2
m1 x1 inp tail 0 generic180_n w=2u l=2u
m2 x2 inn tail 0 generic180_n w=2u l=2u
m3 outn outp x1 0 generic180_n w=2u l=2u
m4 outp outn x2 0 generic180_n w=2u l=2u
m5 outn outp vdd vdd generic180_p w=2u l=4u
m6 outp outn vdd vdd generic180_p w=2u l=4u
m7 outn clk vdd vdd generic180_p w=2u l=4u
m8 outp clk vdd vdd generic180_p w=2u l=4u
m9 x1 clk vdd vdd generic180_p w=2u l=4u
m10 x2 clk vdd vdd generic180_p w=2u l=4u
.tran 4u 16m
.meas tran before when v(outp)='supply/10' fall=last
.meas tran behind when v(outn)='supply/10' fall=1
.meas tran low param='span*((floor(before/period-0.5)+0.5)/8-1)'
.meas tran share param='1/(1+exp((period-behind+before)/tau))'
.meas tran offset param='low+span/8*share'
.end
