// Paths within objects, as types: one that leads nowhere does not compile, and what was not asked for is not there to be read.

import type { KubeObject, ObjectMeta } from './object.ts';

/** The first key of a path and the rest of it. A dot within a key is written `\.`. */
type Split<P extends string, Key extends string = ''> = P extends `${infer A}.${infer Rest}`
  ? A extends `${infer Begin}\\`
    ? Split<Rest, `${Key}${Begin}.`>
    : [`${Key}${A}`, Rest]
  : [`${Key}${P}`, undefined];

/** Paths end at arrays: of these only the whole can be asked for. What is not known has any path. */
type Leads<T, P extends string> = unknown extends T
  ? true
  : NonNullable<T> extends infer O
    ? O extends readonly unknown[]
      ? false
      : Split<P> extends [infer Key extends keyof O, infer Rest]
        ? Rest extends string
          ? Leads<O[Key], Rest>
          : true
        : false
    : never;

/** A type that says nothing of an object but that it is one. (One whose own parts may all be missing says more, though any object is one of it.) */
type Any<T extends KubeObject> = KubeObject extends T ? (keyof T extends keyof KubeObject ? true : false) : false;

/** The same paths; what says so in place of one that leads nowhere (a text would make the others wrong, too). `$status` is in a word what any object is doing. Of a type that is not told apart from any object, all do. */
export type Paths<T extends KubeObject, F extends readonly string[]> = Any<T> extends true
  ? F
  : { readonly [I in keyof F]: string extends F[I] ? F[I] : F[I] extends '$status' ? F[I] : Leads<T, F[I]> extends true ? F[I] : { readonly 'is not a path of these objects': F[I] } };

/** What is at the end of a path, and what leads there. */
type At<T, P extends string> = P extends '$status'
  ? { readonly $status?: string }
  : T extends undefined
  ? undefined
  : unknown extends T
    ? unknown
    : Split<P> extends [infer Key extends string, infer Rest]
      ? string extends keyof T
        ? { readonly [K in Key]?: Rest extends string ? At<T[keyof T], Rest> : T[keyof T] }
        : { readonly [K in keyof T as K extends Key ? K : never]: Rest extends string ? At<T[K], Rest> : T[K] }
      : never;

/** What is always told of an object. */
export interface Identity extends Pick<KubeObject, 'apiVersion' | 'kind'> {
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'uid' | 'resourceVersion'>;
}

type All<U> = (U extends unknown ? (one: U) => void : never) extends (all: infer I) => void ? I : never;

/** An object of which only these paths are asked for; all of it, if they are not known. */
export type Only<T extends KubeObject, F extends readonly string[]> = string extends F[number] ? T : Any<T> extends true ? T : Identity & All<F[number] extends infer P extends string ? (P extends unknown ? At<T, P> : never) : never>;
