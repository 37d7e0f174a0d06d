// How the mock answers and refuses: as a Status on the paths of Kubernetes, as a problem (RFC 9457) elsewhere.

import type { MockRequest, MockResponse } from './memory.ts';
import type { BadQuery } from './query.ts';

const reasons: Readonly<Record<number, string>> = {
  400: 'BadRequest', 401: 'Unauthorized', 403: 'Forbidden', 404: 'NotFound', 405: 'MethodNotAllowed', 406: 'NotAcceptable', 410: 'Expired', 415: 'UnsupportedMediaType', 422: 'Invalid',
  429: 'TooManyRequests', 501: 'NotImplemented', 503: 'ServiceUnavailable', 504: 'Timeout',
};

export function answer(response: MockResponse, status: number, body?: unknown, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...headers });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}

export function refuse({ url = '' }: MockRequest, response: MockResponse, status: number, detail: string, headers: Readonly<Record<string, string>> = {}, metadata: object = {}, reason = reasons[status] ?? 'Unknown'): void {
  const ofKubernetes = /^(\/clusters\/[^/]+)?\/(apis?|openapi|version|healthz|livez|readyz)\b/.test(url);
  const body = ofKubernetes
    ? { kind: 'Status', apiVersion: 'v1', metadata, status: 'Failure', message: detail, reason, ...(status === 504 && { details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] } }), code: status }
    : { type: 'about:blank', title: reasons[status] ?? 'Unknown', status, detail, reason };
  response.writeHead(status, { 'Content-Type': ofKubernetes ? 'application/json' : 'application/problem+json', ...headers });
  response.end(status === 204 ? undefined : JSON.stringify(body));
}

export function refuseAs(request: MockRequest, response: MockResponse, { status, message, metadata, retryAfter, reason }: BadQuery): void {
  const headers = { ...(status === 401 && { 'WWW-Authenticate': 'Bearer' }), ...([429, 503, 504].includes(status) && { 'Retry-After': String(retryAfter) }) } as Record<string, string>;
  refuse(request, response, status, message, headers, metadata, reason);
}
