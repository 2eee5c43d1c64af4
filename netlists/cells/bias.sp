* Bias diodes with the sink of a pedestal: a pin current becomes a gate line, on which a device sinks a copy of it.
* copy = 1 but for the output conductance; strong = 1 at 32 times the current in the strong diode; low: the share of
* the current that is left at 0.15 V of drain, 1 - exp(-V_DS / U_T) less the output conductance from there.
* Cells, as scripts/write_goldens.py writes them:
* bias diode: current into line -> nMOS gate line
.subckt bias_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends bias_diode

* pedestal: what a state of 0 still carries, so that its gate lines settle
.subckt pedestal_sink out line
msink out line 0 0 generic180_n w=5e-06 l=5e-06 m=1
.ends pedestal_sink

* bias diode of 32 devices: 32 times the set-point into line -> nMOS gate line
.subckt strong_diode line
mdiode line line 0 0 generic180_n w=5e-06 l=5e-06 m=32
.ends strong_diode
* Bench:
.param supply=1.8 pin=100p node=0.54
vdd vdd 0 {supply}
ibias vdd line {pin}
xbias line bias_diode
xsink out line pedestal_sink
vout out 0 pwl(0 {supply} 1 0)
istrong vdd wide {32*pin}
xstrong wide strong_diode
xcopy copied wide pedestal_sink
vcopy copied 0 {supply-node}
.tran 2m 1
.meas tran sunk find i(vout) when v(out)='supply-node' fall=1
.meas tran sunk_low find i(vout) when v(out)=0.15 fall=1
.meas tran weak find i(vcopy) at=0.5
.meas tran copy param='-sunk/pin'
.meas tran strong param='-weak/pin'
.meas tran low param='sunk_low/sunk'
.end
