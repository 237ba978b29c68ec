"""A SLURM cluster of two nodes on this machine, from Debian's packages slurmctld, slurmd, munge.

Processes of its own, files and ports of its own: what else of SLURM is on the machine is left alone.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
from pathlib import Path

from ._machines import Machine, running, wait_until, why_not_machines

PATIENCE = 600.0  # seconds for a daemon to come up
ANSWER = 1800.0  # and for a command to answer; one waits for a job
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
# SchedulerParameters: a job begins when it can, and not at the next of looks half a minute apart.
# cred_expire: seconds until a job that was queued again may start. KillWait: and until one that was told to end is
# killed, which on a busy machine still writes its checkpoint. urgent: its jobs preempt those of work.
CONFIG = """
ClusterName=two
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=300
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=node1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={first} CPUs=1
NodeName=node2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={second} CPUs=1
PartitionName=work Nodes=node1,node2 Default=YES PriorityTier=1 State=UP
PartitionName=urgent Nodes=node1,node2 PriorityTier=10 State=UP
"""


def why_not_slurm_cluster():
    """Why there can be no cluster here; "" where there can."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        return f"there is no {missing[0]} (apt-get install slurmctld slurmd slurm-client munge)"
    return why_not_machines()


class SlurmCluster:
    """nodes: its two machines by name. env: what SLURM's commands find it by. log: its controller's."""

    def __init__(self, folder: Path, port: int):
        self.folder, self.log = folder, folder / "slurmctld.log"
        self.env = {"SLURM_CONF": str(folder / "slurm.conf")}
        ports = {"port": port, "first": port + 1, "second": port + 2}
        (folder / "slurm.conf").write_text(CONFIG.format(folder=folder, **ports))
        for name in ("munge", "state", "spool-node1", "spool-node2"):
            (folder / name).mkdir(mode=0o755)
        self.nodes = {name: self._describe_node(name) for name in ("node1", "node2")}

    def _describe_node(self, name):
        command = ["slurmd", "-D", "-N", name]
        return Machine(command, env=self.env, log=self.folder / f"{name}.log")

    def call(self, *command):
        """What a command of SLURM says."""
        env = os.environ | self.env
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=ANSWER)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def count_nodes(self, state):
        return (
            self.call("sinfo", "--noheader", "--Node", "-p", "work", "-o", "%T")
            .split()
            .count(state)
        )

    @contextlib.contextmanager
    def run(self):
        """Run the cluster while the block lasts."""
        with contextlib.ExitStack() as daemons:
            munge = self.folder / "munge"
            (munge / "key").write_bytes(secrets.token_bytes(128))
            (munge / "key").chmod(0o600)
            files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log"}
            options = [f"--{key}={munge / name}" for key, name in files.items()]
            options.append(f"--seed-file={munge / 'seed'}")
            # The key is nobody else's: that the folder of the tests may be written by others is no matter.
            self._start(daemons, ["munged", "--foreground", "--force", *options])
            wait_until((munge / "socket").exists, "munge's socket", PATIENCE, [munge / "log"])
            self._start(daemons, ["slurmctld", "-D", "-i"])
            daemons.enter_context(running(*self.nodes.values()))
            logs = [self.log, *[node.log for node in self.nodes.values()]]
            wait_until(self._is_up, "two idle nodes", PATIENCE, logs)
            yield self

    def _start(self, daemons, command):
        env = os.environ | self.env
        with open(self.folder / f"{command[0]}.out", "wb") as log:
            process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        daemons.callback(process.wait)
        daemons.callback(process.terminate)

    def _is_up(self):
        asked = ["sinfo", "--noheader", "--Node", "-p", "work", "-o", "%T"]
        env = os.environ | self.env
        done = subprocess.run(asked, env=env, capture_output=True, text=True, timeout=ANSWER)
        return done.stdout.split() == ["idle", "idle"]
