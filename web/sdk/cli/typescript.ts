// Writes schemas as TypeScript. What is written for the same documents is the same, wherever and whenever that is.

import { constantNames, sorted, storedMeta, typeNames } from './names.ts';
import { compare, type Document, type Kind, type Schema } from './openapi.ts';

const refPrefix = '#/components/schemas/';
const objectMeta = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const width = 130;

/** A module with a constant for each of these kinds, and the types of all that they refer to. */
export function moduleOf(documents: readonly Document[], kinds: readonly Kind[]): string {
  const schemas = new Map<string, Schema>();
  for (const { components } of documents) {
    for (const [name, schema] of Object.entries(components?.schemas ?? {})) if (!schemas.has(name)) schemas.set(name, schema);
  }
  const reached = reach(schemas, [...kinds.map(({ schema }) => schema), objectMeta].filter((name) => schemas.has(name)));
  const writer = new Writer(schemas, typeNames(reached), new Set(kinds.map(({ schema }) => schema)));
  const constants = constantNames(kinds);
  const parts = [
    "// Written by `kubecast types` from the cluster's own documents. Not to be edited: what is changed here is gone the next time.\n\nimport { defineResource } from '@kubecast/sdk';\n",
    ...[...kinds].sort((a, b) => compare(constants.get(a) ?? '', constants.get(b) ?? '')).map((kind) => writer.constant(kind, constants.get(kind) ?? '')),
    writer.storedMeta(),
    ...[...reached].sort((a, b) => compare(writer.name(a), writer.name(b))).map((name) => writer.declaration(name)),
  ];
  return parts.join('\n');
}

/** What is referred to from these, and they themselves. */
function reach(schemas: ReadonlyMap<string, Schema>, from: readonly string[]): string[] {
  const seen = new Set<string>();
  const todo = [...from];
  const look = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === '$ref' && typeof inner === 'string') todo.push(inner.slice(refPrefix.length));
      else look(inner);
    }
  };
  for (let name = todo.pop(); name !== undefined; name = todo.pop()) {
    if (seen.has(name) || !schemas.has(name)) continue;
    seen.add(name);
    look(schemas.get(name));
  }
  return sorted(seen);
}

class Writer {
  readonly #schemas: ReadonlyMap<string, Schema>;
  readonly #names: ReadonlyMap<string, string>;
  /** The schemas of whole objects. */
  readonly #objects: ReadonlySet<string>;

  constructor(schemas: ReadonlyMap<string, Schema>, names: ReadonlyMap<string, string>, objects: ReadonlySet<string>) {
    this.#schemas = schemas;
    this.#names = names;
    this.#objects = objects;
  }

  name(schema: string): string {
    return this.#names.get(schema) ?? 'unknown';
  }

  constant({ group, version, plural, namespaced, schema }: Kind, name: string): string {
    const where = namespaced ? 'in namespaces' : 'not in namespaces';
    const of = [...(group === '' ? [] : [`group: ${quote(group)}`]), `version: ${quote(version)}`, `plural: ${quote(plural)}`];
    return `/** \`${unending([plural, group].filter(Boolean).join('.'))}\`, ${where}. */\nexport const ${name} = defineResource<${this.name(schema)}>()({ ${of.join(', ')} });\n`;
  }

  /** What a server has stored has a name and a uid; the template of a pod has neither. */
  storedMeta(): string {
    const base = this.#schemas.has(objectMeta) ? ` extends ${this.name(objectMeta)}` : '';
    return `/** The metadata of an object that is there. */\nexport interface ${storedMeta}${base} {\n  readonly name: string;\n  readonly uid: string;\n}\n`;
  }

  declaration(name: string): string {
    const schema = this.#schemas.get(name) ?? {};
    const doc = comment(schema.description, '');
    const object = this.#objects.has(name);
    if (!schema.properties) return `${doc}export type ${this.name(name)} = ${object ? `{ readonly metadata: ${storedMeta}; readonly [key: string]: unknown }` : this.#type(schema, '')};\n`;
    return `${doc}export interface ${this.name(name)} ${this.#members(schema, '', object)}\n`;
  }

  #type(schema: Schema, indent: string): string {
    const type = this.#notNull(schema, indent);
    return schema.nullable && type !== 'unknown' ? `${type} | null` : type;
  }

  #notNull(schema: Schema, indent: string): string {
    if (schema['x-kubernetes-int-or-string']) return 'number | string';
    if (schema.$ref !== undefined) return this.name(schema.$ref.slice(refPrefix.length));
    if (schema.enum && schema.enum.length > 0) return schema.enum.map((value) => (typeof value === 'string' ? quote(value) : JSON.stringify(value))).join(' | ');
    switch (schema.type) {
      case 'string':
        return 'string';
      case 'boolean':
        return 'boolean';
      case 'integer':
      case 'number':
        return 'number';
      case 'array':
        return `readonly ${grouped(this.#type(schema.items ?? {}, indent))}[]`;
      default:
        return schema.type === 'object' || schema.properties || typeof schema.additionalProperties === 'object' ? this.#object(schema, indent) : this.#combined(schema, indent);
    }
  }

  #object(schema: Schema, indent: string): string {
    if (schema.properties && Object.keys(schema.properties).length > 0) return this.#members(schema, indent, false);
    const { additionalProperties } = schema;
    return `{ readonly [key: string]: ${typeof additionalProperties === 'object' ? this.#type(additionalProperties, indent) : 'unknown'} }`;
  }

  /** Branches without a type only restrict what stands beside them. */
  #combined({ allOf = [], anyOf = [], oneOf = [] }: Schema, indent: string): string {
    const known = (parts: readonly Schema[]): string[] => [...new Set(parts.map((part) => this.#type(part, indent)))].filter((type) => type !== 'unknown');
    const all = known(allOf);
    if (all.length > 0) return all.map((type) => (all.length > 1 ? grouped(type) : type)).join(' & ');
    const alternatives = [...anyOf, ...oneOf];
    const some = known(alternatives);
    // One that may be anything makes all of it so.
    return some.length > 0 && alternatives.every((part) => this.#type(part, indent) !== 'unknown') ? some.join(' | ') : 'unknown';
  }

  #members({ properties = {}, required = [], ...rest }: Schema, indent: string, object: boolean): string {
    const inner = `${indent}  `;
    const lines = Object.entries(properties)
      .sort(([a], [b]) => compare(a, b))
      .map(([key, schema]) => {
        const whole = object && key === 'metadata';
        const optional = whole || required.includes(key) ? '' : '?';
        return `${comment(schema.description, inner)}${inner}readonly ${/^[A-Za-z_$][\w$]*$/.test(key) ? key : quote(key)}${optional}: ${whole ? storedMeta : this.#type(schema, inner)};\n`;
      });
    if (object && !properties.metadata) lines.push(`${inner}readonly metadata: ${storedMeta};\n`);
    if (rest['x-kubernetes-preserve-unknown-fields'] || rest.additionalProperties) lines.push(`${inner}readonly [key: string]: unknown;\n`);
    return `{\n${lines.join('')}${indent}}`;
  }
}

const quote = (text: string): string => `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

/** What stands before `[]` or `&`. What is within words and braces says nothing of the whole. */
function grouped(type: string): string {
  let outside = type.replace(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\/\*[^]*?\*\//g, '');
  for (let before = ''; before !== outside; ) [before, outside] = [outside, outside.replace(/\{[^{}]*\}/g, '')];
  return /[|&]|^readonly /.test(outside) ? `(${type})` : type;
}

const unending = (words: string): string => words.replaceAll('*/', '*\\/');

/** A comment of these words, which they cannot end. */
function comment(words: string | undefined, indent: string): string {
  if (!words?.trim()) return '';
  const lines = unending(words)
    .split('\n')
    .flatMap((line) => wrap(line.trimEnd(), width - indent.length));
  while (lines.at(-1) === '') lines.pop();
  if (lines.length === 1 && (lines[0]?.length ?? 0) < width - indent.length - 6) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd() + '\n').join('')}${indent} */\n`;
}

function wrap(line: string, limit: number): string[] {
  const lines: string[] = [];
  let now = '';
  for (const word of line.split(' ')) {
    if (now !== '' && now.length + 1 + word.length > limit) {
      lines.push(now);
      now = word;
    } else now = now === '' ? word : `${now} ${word}`;
  }
  return [...lines, now];
}
