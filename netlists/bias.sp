* bias on generic180

* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

* bias diode of 32 devices: 32 times the set-point into line -> nMOS gate line
.subckt strong_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=32
.ends strong_diode
