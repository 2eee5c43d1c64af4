* Differential pair integrator, a synapse: its time constant and the current at the end of a pulse of 2 ms.
* A pulse on `pre` lets the current of mw through the pair min mthr, which discharges cs. mtau charges it again at i_tau,
* so the voltage rises linearly and the current of mout falls exponentially, tau = C U_T n / i_tau.
* Written anew from C. Bartolozzi and G. Indiveri, Synaptic dynamics in analog VLSI, Neural Computation 19 (2007) 2581.
.param supply=1.8 weight=2n itau=100p
vdd vdd 0 {supply}
vpre pre 0 pwl(0 0 1m 0 1.01m {supply} 3m {supply} 3.01m 0)
iw vdd w {weight}
mw0 w w 0 0 generic180_n w=2u l=2u
mw foot w 0 0 generic180_n w=2u l=2u
mpre tail pre foot 0 generic180_n w=2u l=2u
min syn syn tail 0 generic180_n w=2u l=2u
mthr vdd thr tail 0 generic180_n w=2u l=2u
vthr thr 0 {supply-0.55}
itau t 0 {itau}
mtau0 t t vdd vdd generic180_p w=2u l=4u
mtau syn t vdd vdd generic180_p w=2u l=4u
cs syn vdd 2p
mout out syn vdd vdd generic180_p w=2u l=4u
vout out 0 0
.tran 20u 12m
.meas tran peak max i(vout)
.meas tran tau trig i(vout) val=0.1n fall=1 td=3m targ i(vout) val='0.1n/exp(1)' fall=1 td=3m
.end
