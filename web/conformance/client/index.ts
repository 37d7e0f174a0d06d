import type { Case } from '../case.ts';
import { answerCases } from './answers.ts';
import { resumeCases } from './resumes.ts';
import { rowCases } from './rows.ts';
import type { ClientSubject } from './subject.ts';

/** What any client of this contract has to do when its server, or the way there, behaves case by case as badly as they do. */
export const clientCases: readonly Case<ClientSubject>[] = [...rowCases, ...resumeCases, ...answerCases];
