// Chromium starts no worker for a page that is a file. The search then runs in a hidden frame, and gets copies of messages as in a worker.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.body.appendChild(Object.assign(document.createElement("iframe"), { hidden: true }));
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.send(this, data);
      this.loaded = new Promise((resolve) => {
        const script = Object.assign(inside.document.createElement("script"), { src: url, onload: resolve });
        script.onerror = () => this.onerror?.(new Error(`cannot load ${url}`));
        inside.document.body.append(script);
      });
    }
    postMessage(data) {
      this.loaded.then(() => this.send(this.frame.contentWindow, data));
    }
    send(to, data) {
      const copy = structuredClone(data);
      setTimeout(() => to?.onmessage?.({ data: copy }));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
