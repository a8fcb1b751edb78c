#!/bin/sh
# A fake runtime driven from the shell: serve it, program it, use it, ask what happened.
# Uses crictl when it is installed, else the small client beside this file.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
dir=$(mktemp -d)
export FAKECRI_CONTROL="unix://$dir/ctl.sock"
endpoint="unix://$dir/cri.sock"

fakecri serve --listen "$endpoint" --control "$FAKECRI_CONTROL" --clock manual >"$dir/out" &
server=$!
trap 'kill $server; wait $server || true; rm -rf "$dir"' EXIT
until grep -qs 'control on' "$dir/out"; do
    kill -0 $server || exit 1
    sleep 0.05
done

fakecri ctl behave --container web 'exits: {code: 3, after_s: 90}'
fakecri ctl fault ListContainers 'fails: {code: UNAVAILABLE, message: try again, times: 1}'

if command -v crictl >/dev/null; then
    crictl() { command crictl --runtime-endpoint "$endpoint" --image-endpoint "$endpoint" "$@"; }
    printf '{"metadata": {"name": "shop", "namespace": "default", "uid": "u1"}}' >"$dir/pod.json"
    printf '{"metadata": {"name": "web"}, "image": {"image": "localhost/busybox:1"}}' \
        >"$dir/web.json"
    pod=$(crictl runp "$dir/pod.json")
    crictl start "$(crictl create --no-pull "$pod" "$dir/web.json" "$dir/pod.json")"
else
    python3 "$here/run_pod.py" "$endpoint" shop web localhost/busybox:1
fi

fakecri ctl wait StartContainer --container web --timeout 5
fakecri ctl advance 89
fakecri ctl containers
fakecri ctl advance 2
fakecri ctl containers
fakecri ctl assert order RunPodSandbox CreateContainer StartContainer
fakecri ctl rules --unused
