package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/gjson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// ObjectList is the answer to a list request.
type ObjectList struct {
	metav1.ListMeta
	Items []*Object
	Form  ListForm
}

// ListForm is how the API server writes the lists of a kind. Clients compare them.
type ListForm struct {
	Kind    string // of the list; a definition may name another one than its kind's with List behind it
	Untyped bool   // as those of custom resources: members by their names, and continue although it is empty
}

func (*ObjectList) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the list itself, since lists are never changed.
func (l *ObjectList) DeepCopyObject() runtime.Object { return l }

// listMetadata lists the metadata of a kind's objects, once. A list without a version is of the newest state, even of
// an API server that lags behind others.
func listMetadata(ctx context.Context, lists rest.Interface, kind Kind, options metav1.ListOptions) (*ObjectList, error) {
	request := lists.Get().AbsPath(kind.Path()).VersionedParams(&options, metav1.ParameterCodec).SetHeader("Accept", metadataListOnly)
	body, err := request.MaxRetries(0).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return decodeList(kind, body)
}

// decodeList reads {"kind":…,"metadata":{…},"items":[…]} as it arrives. The undecoded JSON of only one item is held
// at a time.
func decodeList(kind Kind, r io.Reader) (*ObjectList, error) { return compactor{kind: kind}.list(r) }

// list is decodeList for a reader that may have some of the objects already. Of these it makes no others.
func (c compactor) list(r io.Reader) (*ObjectList, error) {
	dec := newDecoder(r)
	list := &ObjectList{}
	if err := expect(dec, '{'); err != nil {
		return nil, err
	}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		switch name := token.String(); { // a token is good until the decoder is asked for more
		case name == "metadata":
			value, err := dec.ReadValue()
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(value, &list.ListMeta); err != nil {
				return nil, err
			}
			list.Form.Untyped = list.Continue == "" && gjson.GetBytes(value, "continue").Exists()
		case name == "items" && dec.PeekKind() != 'n': // null means none
			if err := expect(dec, '['); err != nil {
				return nil, err
			}
			for dec.PeekKind() != ']' {
				value, err := dec.ReadValue()
				if err != nil {
					return nil, err
				}
				item, err := c.object(value)
				if err != nil {
					return nil, err
				}
				list.Items = append(list.Items, item)
			}
			if _, err := dec.ReadToken(); err != nil {
				return nil, err
			}
		case name == "kind":
			value, err := dec.ReadValue()
			if err != nil {
				return nil, err
			}
			list.Form.Kind = gjson.ParseBytes(value).Str
		default: // apiVersion
			if err := dec.SkipValue(); err != nil {
				return nil, err
			}
		}
	}
	if err := expect(dec, '}'); err != nil {
		return nil, err
	}
	if c.kind.Measured {
		return list, nil // which has no version
	}
	if list.ResourceVersion == "" {
		return nil, errors.New("the answer is not a list: it has no metadata.resourceVersion")
	}
	_, err := ParseVersion(list.ResourceVersion)
	return list, err
}

func expect(dec *jsontext.Decoder, kind jsontext.Kind) error {
	token, err := dec.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != kind {
		return fmt.Errorf("%q was expected, not %q", kind, token.Kind())
	}
	return nil
}

// newDecoder returns a decoder that does not look for duplicate names: the API server's encoder cannot produce any,
// and the search would cost a third of the decoding.
func newDecoder(r io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true))
}
