"""The directions of a subcircuit's ports, as its transistors show them."""

from cosim.circuit.elements import Circuit, Instance, Mos, Subcircuit
from cosim.verbs.compile.xschem.sheet import Direction


def port_directions(circuit: Circuit) -> dict[str, dict[str, Direction]]:
    """Return for each subcircuit the direction of its ports: subcircuit -> port -> direction.

    A port is a rail, inout, if a transistor has its bulk there. It is an output if a drain is there; a transistor whose
    gate and drain are on one net takes a current, so it makes no output.
    """
    blocks = {block.name: block for block in circuit.subcircuits}
    found = dict[str, dict[str, Direction]]()

    def of(block: Subcircuit) -> dict[str, Direction]:
        if block.name not in found:
            rails, driven = set[str](), set[str]()
            for element in block.elements:
                match element:
                    case Mos(_, drain, gate, _, bulk):
                        rails.add(bulk)
                        driven |= {drain} - {gate}
                    case Instance(_, nets, subcircuit):
                        for net, way in zip(nets, of(blocks[subcircuit]).values(), strict=True):
                            if way != "in":
                                (rails if way == "inout" else driven).add(net)
                    case _:
                        pass
            found[block.name] = {
                port: "inout" if port in rails else "out" if port in driven else "in" for port in block.ports
            }
        return found[block.name]

    for block in circuit.subcircuits:
        of(block)
    return found
