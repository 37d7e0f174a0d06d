package coding

// The checksum at the end of a gzip stream (RFC 1952, 8) is a remainder of polynomials over GF(2),
// so that of two parts, one behind the other, follows from theirs: the first is shifted by the
// length of the second, and added. Go's hash/crc32 does not do that.

// polynomial is that of crc32.IEEE; the highest bit is the coefficient of x⁰, as in sums.
const polynomial = 0xedb88320

// joinedSum is the sum of a part with another behind it, whose length is in bytes.
func joinedSum(first, second uint32, length uint64) uint32 { return shiftedSum(first, length) ^ second }

// shiftedSum is what a sum adds to that of something behind it, which has a length in bytes.
func shiftedSum(sum uint32, length uint64) uint32 {
	for power := uint32(1 << (31 - 8)); length > 0; length >>= 1 { // x⁸, then its squares
		if length&1 != 0 {
			sum = product(sum, power)
		}
		power = product(power, power)
	}
	return sum
}

// product is the remainder of a product.
func product(a, b uint32) (p uint32) {
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			p ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ polynomial
		} else {
			b >>= 1
		}
	}
	return p
}
