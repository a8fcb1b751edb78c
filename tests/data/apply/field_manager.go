// Asks the field manager of Kubernetes what it makes of applies and updates: lines of JSON in,
// lines of JSON out. Put it into a folder of the Kubernetes source (1.36 was used) and build it there.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	ac "k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

type op struct {
	New     *schema.GroupVersionKind `json:"new"`
	Op      string                   `json:"op"`
	Manager string                   `json:"manager"`
	Force   bool                     `json:"force"`
	Object  map[string]interface{}   `json:"object"`
}

func main() {
	tc := ac.NewTypeConverter(scheme.Scheme)
	var f managedfieldstest.TestFieldManager
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 1<<24)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var o op
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			panic(err)
		}
		if o.New != nil {
			f = managedfieldstest.NewTestFieldManager(tc, *o.New)
			fmt.Println("{}")
			continue
		}
		u := &unstructured.Unstructured{Object: o.Object}
		var err error
		if o.Op == "apply" {
			err = f.Apply(u, o.Manager, o.Force)
		} else {
			err = f.Update(u, o.Manager)
		}
		r := map[string]interface{}{"live": f.Live(), "managed": f.ManagedFields()}
		if err != nil {
			r["error"] = err.Error()
			if s, ok := err.(errors.APIStatus); ok {
				r["status"] = s.Status()
			}
		}
		out.Encode(r)
	}
}
