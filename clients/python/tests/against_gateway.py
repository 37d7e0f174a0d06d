"""Follows a namespace at a real gateway, and writes what it is told as JSON lines, until its input ends.

    {"status": "live", "rows": {NAME: [UID, VERSION]}}   of the mirror of ConfigMaps
    {"transition": {…}, "position": …}                   of the jobs
    {"ended": {NAME: STATE}}, {"listed": n}, {"counts": {…}}, {"lines": n}, {"denied": 403}
"""

import json
import sys
import threading
import time

from kubecast import Client, Denied, Ended, HTTPError, Unreachable

url, namespace, job = sys.argv[1:4]
writing = threading.Lock()
client = Client(url, heartbeat=5)
configmaps = f"/api/v1/namespaces/{namespace}/configmaps"
jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"


def tell(**what):
    with writing:
        print(json.dumps(what), flush=True)


def rows(mirror):
    for state in mirror.states():
        objects = (one["metadata"] for one in state.objects)
        tell(status=state.status, rows={one["name"]: [one["uid"], one["resourceVersion"]] for one in objects})


def transitions():
    position = None
    while True:  # a program that is started anew after each event
        events = client.transitions(jobs, position=position)
        for event in events:
            if event.position:
                position = event.position
            if event.type == "transition":
                tell(transition=event.data, position=position)
                break
        events.close()


def answered(ask):
    """What is answered in the end: a gateway that has just begun may say that it cannot yet."""
    while True:
        try:
            return ask()
        except (Unreachable, Ended):
            pass
        except HTTPError as error:
            if not error.heals:
                raise
        time.sleep(0.2)


def wait():
    state = client.wait_for_job(f"{jobs}/{job}", timeout=300)
    tell(ended={job: state})
    tell(lines=answered(lambda: len([e for e in client.logs(f"{jobs}/{job}", follow=False) if e.type == "line"])))
    tell(listed=answered(lambda: len(list(client.list(configmaps, limit=7)))))
    tell(counts=answered(lambda: client.count(jobs, by="$status")))
    kept = []
    while kept != [state]:  # a gateway that was killed is followed by the next recorder after some seconds
        kept = answered(lambda: [one["state"] for one in client.history(f"{jobs}/{job}")])
        time.sleep(0.1)
    tell(kept=kept, recorded=answered(lambda: [one["seq"] for one in client.history(f"{jobs}/{job}", view="transitions")]))
    try:
        answered(lambda: client.get("/api/v1/secrets"))
    except Denied as error:
        tell(denied=error.status)


with client.follow(configmaps) as mirror:
    for work in (lambda: rows(mirror), transitions, wait):
        threading.Thread(target=work, daemon=True).start()
    sys.stdin.read()
