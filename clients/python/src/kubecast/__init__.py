"""Follow Kubernetes objects, the history of jobs, and logs through a Kubecast gateway.

    from kubecast import Client

    kc = Client("https://kubecast.example.com", token=lambda: open("/path/to/token").read())
    for job in kc.list("/apis/batch/v1/namespaces/team-a/jobs"):
        print(job["metadata"]["name"])

Nothing here needs more than the standard library. What is promised on the wire is in the
gateway's docs/wire.md.
"""

from .client import Client, Event
from .errors import Denied, Ended, HTTPError, KubecastError, Unreachable
from .mirror import Mirror

__all__ = ["Client", "Denied", "Ended", "Event", "HTTPError", "KubecastError", "Mirror", "Unreachable"]
