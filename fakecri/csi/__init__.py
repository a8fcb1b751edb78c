"""A storage driver made for tests, for any kubelet: settable answers, faults and delays (NODE-216).

    driver = FakeCsiDriver("disks.example", node_id="n1", capabilities=["STAGE_UNSTAGE_VOLUME"])
    await registry.plug_in(socket, csi_plugin(driver))   # of fakecri.deviceplugin.registered
    driver.fails("NodeStageVolume", "no such disk", code="NOT_FOUND", times=2)
    ...
    assert driver.methods() == ["NodeGetInfo", "NodeStageVolume", ...]

It mounts nothing: a published volume is a directory with one file. `serving` is its gRPC services;
`in_process` is how a kubelet in virtual time reaches it. It never imports a kubelet.
"""

from fakecri.csi.driver import CsiCall, FakeCsiDriver
from fakecri.csi.faults import CsiFault

__all__ = ["CsiCall", "CsiFault", "FakeCsiDriver"]
