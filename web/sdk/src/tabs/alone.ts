// A stream for this tab alone, where tabs cannot share one.

import { connect, type ConnectionRequest, type Stream } from '../connection.ts';
import { Lost } from '../lost.ts';

/** Over HTTP/1.1 a browser has six connections to a gateway. With the last one taken nothing of it would load. */
const most = 4;
/** How long the other tabs may take to say what they have, in milliseconds. */
const patience = 200;

/** Each stream has a number. These are this tab's. */
const streams = new Set<number>();
/** What it asks for, and which streams come before each. Of two that are asked for at once the smaller number does. */
const wanted = new Map<number, Set<number>>();
let channel: BroadcastChannel | undefined;

/** Throws {@link Lost} with the reason `tabs` where the browser would have no connection left. */
export async function openAlone(request: ConnectionRequest, signal: AbortSignal): Promise<Stream> {
  const number = Math.random();
  if ((await before(number)) >= most) throw new Lost('tabs', 'Too many tabs have a stream of this gateway.');
  streams.add(number);
  const end = (): boolean => streams.delete(number);
  try {
    const connection = await connect(request, signal);
    // However it ends, it is closed.
    const close = connection.close.bind(connection);
    connection.close = () => {
      end();
      close();
    };
    return connection;
  } catch (error) {
    end();
    throw error;
  }
}

/** How many streams the tabs of this origin have, or asked for before; 0 where that does not matter. */
async function before(number: number): Promise<number> {
  const [page] = globalThis.performance.getEntriesByType('navigation') as { nextHopProtocol?: string }[];
  if (page?.nextHopProtocol === undefined || !/^http\/1|^$/.test(page.nextHopProtocol) || !('BroadcastChannel' in globalThis)) return 0;
  if (!channel) {
    channel = new BroadcastChannel('kubecast alone');
    // What is wanted, and from others what comes before it.
    channel.onmessage = ({ data: [one, found] }: MessageEvent<[number, number[]?]>) => {
      if (!found) channel?.postMessage([one, ahead(one)]);
      for (const other of found ?? []) wanted.get(one)?.add(other);
    };
  }
  const seen = new Set(ahead(number));
  wanted.set(number, seen);
  channel.postMessage([number]);
  await new Promise((resolve) => setTimeout(resolve, patience));
  wanted.delete(number);
  return seen.size;
}

/** This tab's streams that come before one. It comes before those that are wanted by a greater number. */
function ahead(one: number): number[] {
  const found = [...streams];
  for (const [number, seen] of wanted) {
    if (number < one) found.push(number);
    else seen.add(one);
  }
  return found;
}
