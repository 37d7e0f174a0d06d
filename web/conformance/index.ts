/**
 * The conformance suite: what the contract between gateway and browser promises, as cases for any server and any client of it, in any test runner.
 *
 * ```ts
 * import { clientCases, lacks } from '@kubecast/sdk/conformance';
 * const mine = { silence: 12_500, open: ({ url, path, fetch }) => new MyClient(url + path, fetch) };
 * for (const one of clientCases) test.skipIf(lacks(one, mine))(one.name, () => one.run(mine));
 * ```
 *
 * - {@link clientCases}: a server of which each byte is decided misbehaves, and what the client shows is looked at; {@link ClientSubject}.
 * - {@link serverCases}: a server is asked, and what it says is held against what its objects are; {@link ServerSubject}.
 *
 * Each case is tried by itself, in any order, and beside others.
 *
 * @packageDocumentation
 */

export { Failure, lacks, type Case } from './case.ts';
export { clientCases } from './client/index.ts';
export { serverCases } from './server/index.ts';
export type { Room, ServerAbility, ServerSubject, Thing } from './server/subject.ts';
export type { ClientSubject, ClientUnderTest, Place, Row } from './client/subject.ts';
