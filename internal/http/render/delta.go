package render

import (
	"bytes"
	"encoding/json"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// MergePatch is the RFC 7386 patch from one state of an object to the next. It is "" if the patch would not be
// shorter than the object, or not exact: null means absence in a merge patch, so a value that becomes null cannot be
// expressed.
func MergePatch(before, after string) string {
	patch, err := jsonpatch.CreateMergePatch([]byte(before), []byte(after))
	if err != nil || len(patch) >= len(after) {
		return ""
	}
	applied, err := jsonpatch.MergePatch([]byte(before), patch)
	if err != nil || !sameJSON(applied, []byte(after)) {
		return ""
	}
	return string(patch)
}

// sameJSON compares by value. It is stricter than jsonpatch.Equal, for which null and absence are the same.
func sameJSON(a, b []byte) bool {
	var ca, cb any
	if decode(a, &ca) != nil || decode(b, &cb) != nil {
		return false
	}
	ja, errA := json.Marshal(ca)
	jb, errB := json.Marshal(cb)
	return errA == nil && errB == nil && bytes.Equal(ja, jb)
}

func decode(text []byte, into *any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return dec.Decode(into)
}
