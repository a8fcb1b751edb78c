"""What to do with a pod, decided from records alone: no call, no wait, no look at a clock. Read
`actions` first; `pod_actions` has the values it answers with.
"""
