// Package coding owns the content codings of answers: which are offered, what encodes them, and
// what many clients get alike, which is encoded once.
//
// What it promises: an answer is encoded in pieces that stand for themselves, one after the other.
// No piece refers to what came before it, so the same piece fits into anybody's answer, and nothing
// is kept for an answer between its pieces but a checksum. Each piece can be decoded to its end as
// soon as it has arrived. Zstandard's pieces are frames (RFC 8878, 3.1). Those of gzip are the
// blocks of one member (RFC 1952), since many decoders stop behind the first.
//
// What it refuses: to encode pieces together that are not sent together. So the length of a piece
// tells of nothing but what is in it.
package coding
