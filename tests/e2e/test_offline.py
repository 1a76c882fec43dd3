import psutil


def test_the_server_opens_no_socket_and_writes_no_file(stage):
    editor = stage()
    before = {path for path in stage.folder.rglob("*") if path.is_file()}
    uri = "file:///w/x.py"
    editor.open(uri, "x = ")
    editor.complete(uri)
    process = psutil.Process(editor.client.process.pid)
    assert process.net_connections("inet") == []
    editor.client.close()
    after = {path for path in stage.folder.rglob("*") if path.is_file()}
    assert after - before <= {stage.journal}
