// A stream for this tab alone, where tabs cannot share one.

import { Connection, Lost, type ConnectionRequest, type Stream } from '../connection.ts';

/** Over HTTP/1.1 a browser has six connections to a gateway. With the last one taken nothing of it would load. */
const most = 4;
/** How long the other tabs may take to say that they have one, in milliseconds. */
const patience = 200;

const open = new Set<Connection>();
let channel: BroadcastChannel | undefined;

/** Throws {@link Lost} with the reason `tabs` where the browser would have no connection left. */
export async function openAlone(request: ConnectionRequest, signal: AbortSignal): Promise<Stream> {
  if ((await others()) >= most) throw new Lost('tabs', 'Too many tabs have a stream of this gateway.');
  const connection = await Connection.open(request, signal);
  open.add(connection);
  // However it ends, it is closed.
  const close = connection.close.bind(connection);
  connection.close = () => {
    open.delete(connection);
    close();
  };
  return connection;
}

/** How many streams the tabs of this origin have, this one's included; 0 where that does not matter. */
async function others(): Promise<number> {
  const [page] = globalThis.performance.getEntriesByType('navigation') as { nextHopProtocol?: string }[];
  if (page?.nextHopProtocol === undefined || !/^http\/1|^$/.test(page.nextHopProtocol) || !('BroadcastChannel' in globalThis)) return 0;
  if (!channel) {
    channel = new BroadcastChannel('kubecast alone');
    channel.onmessage = ({ data }: MessageEvent<unknown>) => {
      if (data === 'who') channel?.postMessage(open.size);
      else if (typeof data === 'number') counted += data;
    };
  }
  counted = open.size;
  channel.postMessage('who');
  await new Promise((resolve) => setTimeout(resolve, patience));
  return counted;
}

let counted = 0;
