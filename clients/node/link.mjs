import { connect } from 'node:net';
import { createInterface } from 'node:readline';

// serve does what the test says, in JSON lines over one TCP connection, and returns when that ends: nothing of a driver
// outlives its test. `open(command, report)` opens a stream and returns what closes it.
export async function serve(address, open) {
  const [host, port] = address.split(':');
  const socket = connect({ host, port: Number(port) });
  const streams = new Map();
  for await (const line of createInterface({ input: socket })) {
    const command = JSON.parse(line);
    if (command.open) {
      const report = (what) => socket.write(JSON.stringify({ stream: command.open, ...what }) + '\n');
      streams.set(command.open, await open(command, report));
    } else {
      await streams.get(command.close)?.();
      streams.delete(command.close);
    }
  }
}
