import type { Case } from '../case.ts';
import { historyCases } from './history.ts';
import { kubernetesCases } from './kubernetes.ts';
import { listCases } from './lists.ts';
import { queryCases } from './queries.ts';
import { refusalCases } from './refusals.ts';
import { resumeCases } from './resumes.ts';
import { streamCases } from './streams.ts';
import type { ServerSubject } from './subject.ts';

/** What any server of this contract has to do. */
export const serverCases: readonly Case<ServerSubject>[] = [...streamCases, ...resumeCases, ...refusalCases, ...queryCases, ...listCases, ...kubernetesCases, ...historyCases];
