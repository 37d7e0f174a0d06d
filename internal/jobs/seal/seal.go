// Package seal hides the numbers of a log from callers who may see a part of it only. The numbers
// count everybody's transitions, so they would tell how much happens that such a caller may not
// see.
//
// What it promises: a sealed text tells nothing of its number but to who has the key, and cannot be
// made without it. A row has one sealed number for good, at all replicas that share the key. A
// position has another text each time, so two of them do not tell whether something happened
// between. All texts of a sort have the same length.
//
// What it refuses: texts of another log, and each spelling of a text but the one that it made.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
)

// KeySize is the size of a key, in bytes.
const KeySize = 32

// NewKey makes a key.
func NewKey() (key [KeySize]byte) {
	_, _ = rand.Read(key[:]) // never fails
	return key
}

// Numbers seals the numbers of one log. Its methods may be called concurrently.
type Numbers struct {
	rows      cipher.Block // a row's number and as many zeros: one block, which has the same text each time
	positions cipher.AEAD  // with a random nonce
}

// New returns the Numbers of a log. Each log has keys of its own, so a number of one says nothing in another.
func New(key [KeySize]byte, cluster, resource string) *Numbers {
	block := func(of string) cipher.Block {
		derived := must(hkdf.Key(sha256.New, key[:], nil, "kubecast history "+of+" v1\x00"+cluster+"\x00"+resource, KeySize))
		return must(aes.NewCipher(derived))
	}
	return &Numbers{block("rows"), must(cipher.NewGCMWithRandomNonce(block("positions")))}
}

// must is for what fails only with a key of another size.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// A text has lower-case letters and digits only, as event ids do.
var text = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

const numberSize = 8

// RowLength and PositionLength are the lengths of texts, in bytes.
const (
	RowLength      = (aes.BlockSize*8 + 4) / 5
	PositionLength = ((12+numberSize+16)*8 + 4) / 5
)

// Row is the text of a row's number.
func (n *Numbers) Row(seq uint64) string {
	var block [aes.BlockSize]byte
	binary.BigEndian.PutUint64(block[:], seq)
	n.rows.Encrypt(block[:], block[:])
	return text.EncodeToString(block[:])
}

// Position is a new text of a number up to which somebody has been told.
func (n *Numbers) Position(seq uint64) string {
	return text.EncodeToString(n.positions.Seal(nil, nil, binary.BigEndian.AppendUint64(nil, seq), nil))
}

// Open is the number of a row's or position's text, which may come from anyone; ok is false if it
// is none of this log's.
func (n *Numbers) Open(sealed string) (seq uint64, ok bool) {
	if len(sealed) != RowLength && len(sealed) != PositionLength {
		return 0, false
	}
	raw, err := text.DecodeString(sealed)
	if err != nil || text.EncodeToString(raw) != sealed { // the last letter has bits that say nothing
		return 0, false
	}
	if len(sealed) == RowLength {
		n.rows.Decrypt(raw, raw)
		seq, zeros := binary.BigEndian.Uint64(raw), binary.BigEndian.Uint64(raw[numberSize:])
		return seq, zeros == 0
	}
	if raw, err = n.positions.Open(nil, nil, raw, nil); err != nil {
		return 0, false
	}
	return binary.BigEndian.Uint64(raw), true
}
