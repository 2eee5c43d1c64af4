* Ring oscillator of four inverters and a gate that starts it: its frequency.
* In weak inversion a stage takes C V / (I_0 exp(V / n U_T)), so a threshold that deviates changes a delay exponentially.
* Written anew from A. Hajimiri, S. Limotyrakis and T. H. Lee, Jitter and phase noise in ring oscillators, IEEE J.
* Solid-State Circuits 34 (1999) 790, at a supply below the threshold voltage: A. Wang and A. Chandrakasan, A 180-mV
* subthreshold FFT processor, IEEE J. Solid-State Circuits 40 (2005) 310.
.param supply=0.5
.subckt inverter in out vdd
mn out in 0 0 generic180_n w=2u l=2u
mp out in vdd vdd generic180_p w=2u l=4u m=2
.ends
.subckt nand a b out vdd
mna out a x 0 generic180_n w=2u l=2u
mnb x b 0 0 generic180_n w=2u l=2u
mpa out a vdd vdd generic180_p w=2u l=4u m=2
mpb out b vdd vdd generic180_p w=2u l=4u m=2
.ends
vdd vdd 0 {supply}
vstart start 0 pwl(0 0 50u 0 52u {supply})
x1 n5 start n1 vdd nand
x2 n1 n2 vdd inverter
x3 n2 n3 vdd inverter
x4 n3 n4 vdd inverter
x5 n4 n5 vdd inverter
.options reltol=5e-8
.tran 1u 6m
.meas tran periods trig v(n5) val='supply/2' rise=1 targ v(n5) val='supply/2' rise=4
.meas tran frequency param='3/periods'
.end
