"""Names inside pods: DNS by policy, the hosts file; and what host paths must be."""

from functools import partial
from typing import Any

from kubelet_conformance.harness import limits
from kubelet_conformance.harness.expect import expect, expect_equal
from kubelet_conformance.harness.manifests import container, pod
from kubelet_conformance.harness.node import Node
from kubelet_conformance.registry import Feature, conformance

API, STATUS, RESTART = Feature.API, Feature.STATUS, Feature.RESTART
CLUSTER = {"clusterDNS": ["192.0.2.10"], "clusterDomain": "cluster.test"}
OF_THE_NODE = """\
nameserver 192.0.2.1
nameserver 192.0.2.2
search first.test
search node.test
options timeout:3 ndots:1
"""
FIXED = (
    "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"
    "::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n"
    "fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"
)


def dns(node: Node, name: str) -> tuple[list[str], list[str], list[str]]:
    """Servers, searches and options that the runtime got for the pod."""
    dns_config = node.calls("RunPodSandbox", pod=name)[0].request.config.dns_config
    return list(dns_config.servers), list(dns_config.searches), sorted(dns_config.options)


@conformance(
    id="dns-policies",
    rules=["NODE-220.1", "NODE-220.2", "NODE-220.3", "NODE-220.5", "NODE-221.3"],
    needs=[API, RESTART],
    node_config=CLUSTER,
)
async def each_policy_has_its_servers(node: Node) -> None:
    """Pods get the cluster's name servers, the node's, or only their own, as dnsPolicy and the host
    network say; the last search line of the node counts, and options are replaced by name."""
    file = node.machine.host_path("resolv.conf")
    file.write_text(OF_THE_NODE)
    await node.kubelet.restart(resolvConf=str(file))
    own: dict[str, Any] = {
        "nameservers": ["192.0.2.53"],
        "searches": ["own.test"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}],
    }
    plans: dict[str, dict[str, Any]] = {
        "none": {"dnsPolicy": "None", "dnsConfig": own},
        "default": {"dnsPolicy": "Default"},
        "cluster": {"dnsPolicy": "ClusterFirst"},
        "host": {"dnsPolicy": "ClusterFirst", "hostNetwork": True},
        "with-host": {"dnsPolicy": "ClusterFirstWithHostNet", "hostNetwork": True},
        "added": {"dnsPolicy": "ClusterFirst", "dnsConfig": own},
    }
    await node.api.run_pods(*(pod(name, **fields) for name, fields in plans.items()))
    cluster = ["default.svc.cluster.test", "svc.cluster.test", "cluster.test", "node.test"]
    nodes = (["192.0.2.1", "192.0.2.2"], ["node.test"], ["ndots:1", "timeout:3"])
    expected_settings = {
        "none": (["192.0.2.53"], ["own.test"], ["ndots:2", "rotate"]),
        "default": nodes,
        "cluster": (["192.0.2.10"], cluster, ["ndots:5"]),
        "host": nodes,
        "with-host": (["192.0.2.10"], cluster, ["ndots:5"]),
        "added": (["192.0.2.10", "192.0.2.53"], [*cluster, "own.test"], ["ndots:2", "rotate"]),
    }
    for name, settings in expected_settings.items():
        expect_equal(node, dns(node, name), settings, f"servers, searches, options of {name}")


def hosts_file(node: Node, name: str) -> str:
    """The text of the pod's hosts file."""
    uid = str((node.pod(name) or {})["metadata"]["uid"])
    return node.machine.read_root_file(f"pods/{uid}/etc-hosts")


def mounted_there(node: Node, name: str) -> list[str]:
    """What is mounted at /etc/hosts of the pod's container."""
    mounts = node.calls("CreateContainer", pod=name)[0].request.config.mounts
    return [mount.host_path for mount in mounts if mount.container_path == "/etc/hosts"]


@conformance(id="hosts-file", rules=["NODE-204.3", "NODE-209"], needs=[API], alone=True)
async def pods_get_a_hosts_file(node: Node) -> None:
    """The hosts file of a pod has a fixed part, its addresses and its aliases; that of a pod of the
    host network begins with the node's. A container that mounts something at /etc/hosts has that
    alone; a missing file of the type FileOrCreate is made for it."""
    aliases = [{"ip": "192.0.2.7", "hostnames": ["one.test", "two.test"]}]
    own = node.machine.host_path("hosts")
    mounts = [{"name": "hosts", "mountPath": "/etc/hosts"}]
    volumes = [{"name": "hosts", "hostPath": {"path": str(own), "type": "FileOrCreate"}}]
    await node.api.run_pods(
        pod("web", hostAliases=aliases),
        pod("host", hostNetwork=True, hostAliases=aliases),
        pod("own", container("main", volumeMounts=mounts), volumes=volumes),
    )
    added = "\n# Entries added by HostAliases.\n192.0.2.7\tone.test\ttwo.test\n"
    status = (node.api.pod("web") or {})["status"]
    addresses = "".join(f"{each['ip']}\tweb\n" for each in status["podIPs"])
    expect_equal(node, hosts_file(node, "web"), FIXED + addresses + added, "hosts file of web")
    text = hosts_file(node, "host")
    begin = "# Kubernetes-managed hosts file (host network).\n"
    expect(node, text.startswith(begin) and text.endswith(added), "both ends of the file", text)
    middle = text.removeprefix(begin).removesuffix(added)
    expect(node, "localhost" in middle, "the node's own hosts file in between", text)
    expect_equal(node, len(mounted_there(node, "web")), 1, "mounts at /etc/hosts of web")
    expect_equal(node, mounted_there(node, "own"), [str(own)], "mounts at /etc/hosts of own")
    expect_equal(node, own.is_file(), True, "the file of type FileOrCreate exists")


@conformance(id="host-path-of-another-type", rules=["NODE-204.3", "NODE-204.4"], needs=[API])
async def a_file_is_no_directory(node: Node) -> None:
    """A hostPath that must be a directory and is a file keeps its pod waiting, and so does one that
    must be a file and is a directory; events say what they are not."""
    file, directory = (node.machine.host_path(name) for name in ("file", "directory"))
    file.write_text("")
    directory.mkdir()
    rows = (("one", file, "Directory", "a directory"), ("two", directory, "File", "a file"))
    mounts = [{"name": "data", "mountPath": "/data"}]
    for name, path, kind, _ in rows:
        volume = {"name": "data", "hostPath": {"path": str(path), "type": kind}}
        await node.api.create_pod(
            pod(name, container("main", volumeMounts=mounts), volumes=[volume])
        )
    for name, path, _, kind_words in rows:
        await node.run_until(
            partial(node.events, "FailedMount", pod=name),
            within_s=limits.START_S,
            what=f"an event FailedMount of {name}",
        )
        text = node.events("FailedMount", pod=name)[0]["message"]
        why = f"hostPath type check failed: {path} is not {kind_words}"
        expected_message = f'MountVolume.SetUp failed for volume "data" : {why}'
        expect_equal(node, text, expected_message, "message of the event")
        expect_equal(node, node.count("RunPodSandbox", pod=name), 0, "sandboxes")
