* rectifier on generic180

* rectifier, 8 units
.subckt relu_diode node vdd
mdiode node node vdd vdd generic180_p w=1e-06 l=5e-06 m=8
.ends relu_diode

* rectifier of a candidate current, matched to M1 of the 9T cell
.subckt candidate_diode node vdd
mdiode node node vdd vdd generic180_p w=5e-06 l=5e-06 m=1
.ends candidate_diode
