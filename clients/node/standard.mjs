// standard opens streams with a class that has the face of a browser's EventSource, and reports what it does.
//
// It refers to nothing outside itself, since its text is also run in a page.
export function standard(EventSource) {
  const names = ['added', 'modified', 'deleted', 'synced', 'reset', 'bookmark', 'stale', 'live', 'goodbye'];
  return (url, report) => {
    const source = new EventSource(url);
    source.addEventListener('open', () => report({ type: 'open' }));
    source.addEventListener('error', (error) => {
      // Closed or still trying is the only thing that the standard tells an application about its chances; one of the
      // clients decides it only after it has told of the error.
      queueMicrotask(() => {
        const dead = source.readyState === 2;
        report({ type: dead ? 'dead' : 'lost', message: String(error?.message ?? '') });
      });
    });
    for (const name of names) {
      source.addEventListener(name, (event) => {
        report({ type: 'event', event: name, id: event.lastEventId, data: event.data });
      });
    }
    return () => source.close();
  };
}
