// Conveniences that every page works without: values under the pointer or by arrow keys, and choices that submit themselves.
for (const figure of document.querySelectorAll('[data-points]')) {
  const points = JSON.parse(figure.dataset.points);
  const label = figure.querySelector('.said');
  const graph = figure.querySelector('.graph');
  const cursor = document.createElement('div');
  cursor.className = 'cursor';
  cursor.hidden = true;
  figure.append(cursor);
  let at = points.length;
  const show = (index) => {
    at = Math.max(0, Math.min(points.length - 1, index));
    const plot = graph.getBoundingClientRect();
    const left = plot.left - figure.getBoundingClientRect().left + ((at + 0.5) / points.length) * plot.width;
    label.textContent = points[at].join('\n');
    label.hidden = cursor.hidden = false;
    cursor.style.left = `${left}px`;
    const isRight = at > points.length / 2;
    label.style.left = isRight ? 'auto' : `${left + 10}px`;
    label.style.right = isRight ? `${figure.clientWidth - left + 10}px` : 'auto';
  };
  const hide = () => {
    label.hidden = cursor.hidden = true;
  };
  figure.addEventListener('pointermove', ({ clientX }) => {
    const { left, width } = graph.getBoundingClientRect();
    if (clientX < left - 8) hide();
    else show(Math.floor(((clientX - left) / width) * points.length));
  });
  figure.addEventListener('pointerleave', hide);
  figure.addEventListener('blur', hide);
  figure.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -points.length, End: points.length }[event.key];
    if (event.key === 'Escape') hide();
    if (step === undefined) return;
    event.preventDefault();
    show(at + step);
  });
}
for (const field of document.querySelectorAll('[data-submits]'))
  field.addEventListener('change', () => field.form.requestSubmit());
// An action that waits for the database is looked at again, unless somebody is writing.
const again = document.querySelector('[data-reloads]');
if (again)
  setInterval(() => {
    if (!document.querySelector('textarea:focus, details[open] textarea')) location.replace(again.href);
  }, 2500);
