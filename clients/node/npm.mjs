// Drives the clients of npm that are made for Node: node npm.mjs ADDRESS-OF-THE-TEST
import { EventSource as EventSource5 } from 'eventsource';
import EventSource2 from 'eventsource-2';
import { EventSource as EventSource4 } from 'eventsource-4';
import { createEventSource } from 'eventsource-client';
import { EventSource as LaunchDarkly } from 'launchdarkly-eventsource';
import { EventSource as Undici } from 'undici';

import { serve } from './link.mjs';
import { standard } from './standard.mjs';

const clients = {
  eventsource: standard(EventSource5),
  'eventsource-2': standard(EventSource2),
  'eventsource-4': standard(EventSource4),
  'eventsource-client': eventsourceClient,
  'launchdarkly-eventsource': standard(LaunchDarkly),
  undici: standard(Undici),
};

// eventsource-client has a face of its own.
function eventsourceClient(url, report) {
  const source = createEventSource({
    url,
    onConnect: () => report({ type: 'open' }),
    onMessage: ({ event, id, data }) => report({ type: 'event', event, id, data }),
    // It says nothing when it gives up, except that it plans no further attempt.
    onDisconnect: () => setImmediate(() => report({ type: source.readyState === 'closed' ? 'dead' : 'lost' })),
  });
  return () => source.close();
}

await serve(process.argv[2], ({ client, url }, report) => clients[client](url, report));
process.exit(0); // whatever a client still waits for
