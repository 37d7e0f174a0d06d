package config

import (
	"encoding"
	"fmt"
	"net/url"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Changed returns the keys in which two configurations differ, by their full paths and in the order
// of the file's documentation. A list or a map is one key.
func Changed(a, b Config) (keys []string) {
	walk(reflect.ValueOf(a), reflect.ValueOf(b), "", func(key string, value, other reflect.Value) {
		if !same(value, other) {
			keys = append(keys, key)
		}
	})
	return keys
}

// same reports whether two values of a key mean the same: no list is an empty one.
func same(a, b reflect.Value) bool {
	if kind := a.Kind(); (kind == reflect.Slice || kind == reflect.Map) && a.Len() == 0 {
		return b.Len() == 0
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// With returns the configuration with some keys, given as Changed gives them, as they are in another.
func (c Config) With(other Config, keys ...string) Config {
	walk(reflect.ValueOf(&c).Elem(), reflect.ValueOf(other), "", func(key string, value, other reflect.Value) {
		if slices.Contains(keys, key) {
			value.Set(other)
		}
	})
	return c
}

var text = reflect.TypeFor[encoding.TextMarshaler]()

// walk calls visit for each key below a section of two configurations.
func walk(a, b reflect.Value, prefix string, visit func(key string, a, b reflect.Value)) {
	for i := range a.NumField() {
		key, value := prefix+a.Type().Field(i).Tag.Get("yaml"), a.Field(i)
		if value.Kind() == reflect.Struct && !value.Type().Implements(text) {
			walk(value, b.Field(i), key+".", visit)
		} else {
			visit(key, value, b.Field(i))
		}
	}
}

// hidden stands for a secret.
const hidden = "(not shown)"

// Print returns the configuration as a file would have it that gives every key, without the addresses
// and passwords that are secrets.
func Print(c Config) ([]byte, error) {
	c.Webhooks = slices.Clone(c.Webhooks)
	for i := range c.Webhooks {
		if c.Webhooks[i].URL != "" {
			c.Webhooks[i].URL = hidden
		}
	}
	c.History.Database = withoutSecrets(c.History.Database)
	printed, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("print configuration: %w", err)
	}
	return printed, nil
}

// withoutSecrets is the address of a database without a password, and without parameters, of which
// some databases take more than one secret.
func withoutSecrets(database string) string {
	address, err := url.Parse(database)
	switch {
	case err != nil:
		return hidden
	case address.Scheme == "":
		return database
	}
	if _, has := address.User.Password(); has {
		address.User = url.User(address.User.Username())
	}
	address.RawQuery, address.Fragment = "", ""
	return address.String()
}
