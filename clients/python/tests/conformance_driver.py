"""Opens mirrors for the conformance suite, which is in TypeScript (web/conformance).

Says {"ready": true} once it is there to read commands, and then what mirrors show, as JSON lines:
{"open": n, "url": …, "path": …}, {"close": n}; {"client": n, "status": …, "rows": […]}.
"""

import json
import sys
import threading

from kubecast import Client


def main() -> None:
    mirrors = {}
    writing = threading.Lock()

    def report(n, mirror):
        for state in mirror.states():
            with writing:
                print(json.dumps({"client": n, "status": state.status, "rows": state.objects}), flush=True)

    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        if "close" in command:
            mirror = mirrors.pop(command["close"], None)
            if mirror is not None:  # it may be closed twice
                threading.Thread(target=mirror.close).start()
            continue
        n = command["open"]
        mirrors[n] = Client(command["url"], token="let-me-in", heartbeat=5).follow(command["path"])
        threading.Thread(target=report, args=(n, mirrors[n]), daemon=True).start()


if __name__ == "__main__":
    main()
