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

/** Any text beside those that are offered; `string` alone would leave none to offer. */
type Other = string & {};

type Scalar = string | number | boolean;

type Escaped<K extends string> = K extends `${infer A}.${infer B}` ? `${A}\\.${Escaped<B>}` : K;

/** The keys that a type names; of a map it names none. */
type Named<O> = keyof { [K in keyof O as string extends K ? never : K extends string ? K : never]: true } & string;

/** Whether a value is at the end of a path by which objects are told apart, and not only a part of them. */
type IsScalar<V> = unknown extends V ? true : [Extract<V, Scalar>] extends [never] ? false : true;

/** Whether a type is one of these, and the same; what only looks like one of them is not. */
type IsAmong<O, Types extends readonly unknown[]> = Types extends readonly [infer One, ...infer Rest]
  ? // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- only what is the same leads to the same
    (<X>() => X extends O ? 1 : 2) extends <X>() => X extends One ? 1 : 2
    ? true
    : IsAmong<O, Rest>
  : false;

/**
 * The paths that a type names: to all that is told of an object, or to scalars alone. Few paths that are asked for are longer than five keys: what is, is
 * not offered. Nor is what leads through a type that refers to itself for a second time: with twenty such keys it would be too much for the compiler.
 */
type PathOf<T, Whole extends boolean, Above extends readonly unknown[] = []> = Above['length'] extends 5
  ? never
  : NonNullable<T> extends infer O
    ? O extends Scalar | readonly unknown[]
      ? never
      : IsAmong<O, Above> extends true
        ? never
        : { [K in Named<O>]: (Whole extends true ? Escaped<K> : IsScalar<O[K & keyof O]> extends true ? Escaped<K> : never) | `${Escaped<K>}.${PathOf<O[K & keyof O], Whole, [...Above, O]>}` }[Named<O>]
    : never;

/** What the gateway counts of a pod (wire.md, "Lists"); of no other kind. */
type OfPods<T> = T extends { readonly spec?: infer S } ? ('containers' extends keyof NonNullable<S> ? '$ready' | '$restarts' | '$requests.cpu' | '$requests.memory' | '$requests.nvidia\\.com/gpu' : never) : never;

/** Paths of which objects can be told; editors offer those that the type of the objects names, and any other is a text. */
export type FieldOf<T extends KubeObject> = PathOf<T, true> | '$status' | Other;

/** Paths by which objects are selected, sorted and counted: those to texts, numbers and truth values, and what the gateway derives. */
export type ColumnOf<T extends KubeObject> = PathOf<T, false> | '$status' | OfPods<T>;

/** A {@link ColumnOf} the objects, or any other path; `-` for the greatest first. */
export type SortOf<T extends KubeObject> = ColumnOf<T> | `-${ColumnOf<T>}` | Other;

/** A path, or any of several; what says in place of one that it leads nowhere (a text would make the others wrong, too). */
type Checked<T, P, Derived> = P extends Derived ? P : P extends string ? (Leads<T, P> extends true ? P : { readonly 'is not a path of these objects': P }) : never;

/** The same paths; of a type that is not told apart from any object, all are. `$status` is in a word what any object is doing. */
export type Paths<T extends KubeObject, F extends readonly string[]> = Any<T> extends true
  ? F
  : { readonly [I in keyof F]: string extends F[I] ? (number extends F['length'] ? F[I] : FieldOf<T>) : Checked<T, F[I], '$status'> };

/** The same of paths by which objects are counted. */
export type Columns<T extends KubeObject, B extends readonly string[]> = Any<T> extends true
  ? B
  : { readonly [I in keyof B]: string extends B[I] ? (number extends B['length'] ? B[I] : ColumnOf<T> | Other) : Checked<T, B[I], '$status' | OfPods<T>> };

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
